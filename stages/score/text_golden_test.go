package score

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/texttest"
	"github.com/runexp/runexp/stages/stagetest"
)

// A textGolden is a network's texts with maps and what independent implementations say of them.
type textGolden struct {
	network string
	texts   []texttest.Text
	arrays  map[string]npy.Array
	maps    [][]float64
	free    [][]int // the tokens that aren't special
}

func textGoldens(t *testing.T) (out []textGolden) {
	for _, network := range []string{"bert", "roberta", "deberta", "bag", "bytes"} {
		g := textGolden{network: network, texts: texttest.Texts(t, network),
			arrays: texttest.Goldens(t, network)}
		values := g.arrays["ixg.words"].Float64s()
		for _, x := range g.texts {
			g.maps = append(g.maps, values[:len(x.IDs)])
			values = values[len(x.IDs):]
			var free []int
			for i, special := range x.Special {
				if special == 0 {
					free = append(free, i)
				}
			}
			g.free = append(g.free, free)
		}
		out = append(out, g)
	}
	return out
}

func (g textGolden) payloads() (maps [][]byte) {
	for _, v := range g.maps {
		maps = append(maps, stages.NewTensor(slices.Clone(v), 1, len(v)).Encode())
	}
	return maps
}

// masks returns the rationales: a token is inside if it shares a character with a marked span.
func (g textGolden) masks() (masks [][]byte) {
	for _, x := range g.texts {
		mask := make([]uint8, len(x.IDs))
		for i, o := range x.Offsets {
			for _, r := range x.Rationale {
				if max(o[0], r[0]) < min(o[1], r[1]) {
					mask[i] = 1
				}
			}
			if x.Special[i] != 0 {
				mask[i] = stages.Ignored
			}
		}
		masks = append(masks, stages.NewTensor(mask, 1, len(mask)).Encode())
	}
	return masks
}

func numbersOf(t *testing.T, payloads [][]byte) (out []float64) {
	t.Helper()
	for _, b := range payloads {
		x, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x.Float64s()[0])
	}
	return out
}

// asGolden compares scores with those of a golden, which are NaN together, unless no positive token makes the
// golden's a number.
func asGolden(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	compared := 0
	for i := range want {
		if math.IsNaN(got[i]) != math.IsNaN(want[i]) {
			t.Errorf("%s of text %d: %v, want %v", what, i, got[i], want[i])
		} else if !math.IsNaN(want[i]) {
			if compared++; !(math.Abs(got[i]-want[i]) <= tolerance) {
				t.Errorf("%s of text %d: %v, want %v", what, i, got[i], want[i])
			}
		}
	}
	if compared < len(want)/2 {
		t.Errorf("%s: %d of %d texts compared", what, compared, len(want))
	}
}

// TestGoldenRationales compares the agreement with rationales with scikit-learn's average precision, and F1
// and IoU of the five largest positive tokens.
func TestGoldenRationales(t *testing.T) {
	for _, g := range textGoldens(t) {
		in := map[string][]stages.Data{"maps": {stagetest.Items(nil, g.payloads()...)},
			"masks": {stagetest.Items(nil, g.masks()...)}}
		positive := func(key string) []float64 {
			out := slices.Clone(g.arrays[key].Float64s())
			for i, free := range g.free {
				inside, some := 0, false
				mask, _ := stages.DecodeTensor(g.masks()[i])
				for _, k := range free {
					inside += int(mask.Raw[k])
					some = some || g.maps[i][k] > 0
				}
				if !some || inside == 0 || inside == len(free) { // no map can do better or worse
					out[i] = math.NaN()
				}
			}
			return out
		}
		ap := AveragePrecision.NewParams().(*AveragePrecisionParams)
		ap.Values = metric.Positive
		iou := IoU.NewParams().(*IoUParams)
		iou.Threshold = "top"
		for key, scores := range map[string][][]byte{
			"ap":  stagetest.Run(t, AveragePrecision, ap, in).Payloads["scores"],
			"f1":  stagetest.Run(t, TokenF1, nil, in).Payloads["scores"],
			"iou": stagetest.Run(t, IoU, iou, in).Payloads["scores"],
		} {
			asGolden(t, g.network+", "+key, numbersOf(t, scores), positive(key), 1e-12)
		}
	}
}

// TestGoldenTauLOO compares Kendall's τ with scipy's, of the same drops.
func TestGoldenTauLOO(t *testing.T) {
	for _, g := range textGoldens(t) {
		for _, substrate := range []string{"mask", "pad", "removal"} {
			if g.arrays["tau."+substrate].Shape == nil {
				continue
			}
			drops := g.arrays["loo."+substrate+".p"].Float64s()
			var units, subsets, responses [][]byte
			for i, x := range g.texts {
				special := make([]bool, len(x.IDs))
				row := []float64{0}
				for k := range special {
					if special[k] = x.Special[k] != 0; !special[k] {
						row = append(row, -drops[k])
					}
				}
				drops = drops[len(x.IDs):]
				u := metric.Tokens(special)
				s := metric.NewSubsets(u.Count, u.Count)
				for k := range u.Count {
					s.Add(k, k)
				}
				if u.Count != len(g.free[i]) {
					t.Fatalf("%d units", u.Count)
				}
				units = append(units, stages.NewTensor(u.Numbers(), 1, len(special)).Encode())
				subsets = append(subsets, s.Encode())
				responses = append(responses, stages.NewTensor(append(row, 0), 1, len(row)+1).Encode())
			}
			facts := stages.Facts{"draw": "single", "responses": "probability", "repeats": "1"}
			r := stagetest.Run(t, TauLOO, nil, map[string][]stages.Data{
				"maps":      {stagetest.Items(nil, g.payloads()...)},
				"subsets":   {stagetest.Items(facts, subsets...)},
				"responses": {stagetest.Items(facts, responses...)},
				"units":     {stagetest.Items(facts, units...)}})
			asGolden(t, g.network+", "+substrate, numbersOf(t, r.Payloads["scores"]),
				g.arrays["tau."+substrate].Float64s(), 1e-9)
		}
	}
}

// TestGoldenERASER compares comprehensiveness and sufficiency with those of the same drops.
func TestGoldenERASER(t *testing.T) {
	for _, g := range textGoldens(t) {
		for _, substrate := range []string{"mask", "pad", "removal"} {
			if g.arrays["comp."+substrate].Shape == nil {
				continue
			}
			ports := map[string][][]byte{}
			for port, key := range map[string]string{"removed": "comp.", "kept": "suff."} {
				drops := g.arrays[key+substrate].Float64s()
				for i, free := range g.free {
					positive := 0
					for _, k := range free {
						if g.maps[i][k] > 0 {
							positive++
						}
					}
					// The response to the text is 0, so that those to its parts are the negative drops.
					curve := make([]float64, 2*11)
					for k := 1; k <= 10; k++ {
						curve[k] = -drops[10*i+k-1]
						curve[11+k] = float64(min(k*len(free)/10, positive))
						if curve[11+k] == 0 {
							curve[k] = 0
						}
					}
					ports[port] = append(ports[port], stages.NewTensor(curve, 2, 11).Encode())
				}
			}
			facts := func(order string) stages.Facts {
				return stages.Facts{"responses": "probability,changed", "order": order, "unit": "token",
					"shares": "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1"}
			}
			r := stagetest.Run(t, ERASER, nil, map[string][]stages.Data{
				"removed": {stagetest.Items(facts("deletion"), ports["removed"]...)},
				"kept":    {stagetest.Items(facts("insertion"), ports["kept"]...)}})
			for port, key := range map[string]string{"comprehensiveness": "comp.", "sufficiency": "suff."} {
				asGolden(t, g.network+", "+port+", "+substrate, numbersOf(t, r.Payloads[port]),
					g.arrays["aopc."+key+substrate].Float64s(), 1e-6)
			}
		}
	}
}

// TestERASERTakesEqualSteps checks that curves of other numbers of steps, which have no shares, are refused.
func TestERASERTakesEqualSteps(t *testing.T) {
	curve := func(order string, points int) []stages.Data {
		return []stages.Data{stagetest.Items(stages.Facts{"responses": "probability,changed", "order": order,
			"unit": "token"}, stages.NewTensor(make([]float64, 2*points), 2, points).Encode())}
	}
	_, err := stagetest.Try(ERASER, ERASER.NewParams(), map[string][]stages.Data{
		"removed": curve("deletion", 11), "kept": curve("insertion", 6)})
	if err == nil || !strings.Contains(err.Error(), "has 11 points, and that on \"kept\" 6") {
		t.Errorf("curves of 10 and of 5 steps: %v", err)
	}
}

// TestERASERTakesCurvesOfTexts checks that curves of other units, orders and shares are refused.
func TestERASERTakesCurvesOfTexts(t *testing.T) {
	removed := stages.Facts{"order": "deletion", "unit": "token", "shares": "0,0.5"}
	kept := stages.Facts{"order": "insertion", "unit": "token", "shares": "0,0.5"}
	with := func(f stages.Facts, key, value string) stages.Facts {
		out := stages.Facts{}
		for k, v := range f {
			out[k] = v
		}
		out[key] = value
		return out
	}
	for _, tt := range []struct {
		removed, kept stages.Facts
		want          string
	}{
		{removed, kept, ""},
		{with(removed, "order", "morf"), kept, ""},
		{with(removed, "unit", ""), kept, "curves of texts"},
		{removed, with(kept, "unit", "region"), "curves of texts"},
		{with(removed, "order", "lerf"), kept, "most relevant tokens first"},
		{kept, removed, "most relevant tokens first"},
		{removed, with(kept, "order", "deletion"), "needs curves of insertion"},
		{removed, with(kept, "shares", "0,0.4"), "other shares"},
	} {
		_, err := ERASER.Facts(ERASER.NewParams(), map[string]stages.Facts{"removed": tt.removed,
			"kept": tt.kept})
		if good := tt.want == ""; good != (err == nil) || !good && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v and %v: %v, want %q", tt.removed, tt.kept, err, tt.want)
		}
	}
}

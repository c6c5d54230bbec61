package score

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/stagetest"
)

// mixedMaps returns maps of texts of several lengths, with a mask each: the first and the last token are
// special.
func mixedMaps(seed uint64, lengths ...int) (maps, masks [][]byte) {
	r := rand.New(rand.NewPCG(seed, 2))
	for _, n := range lengths {
		values, mask := make([]float64, n), make([]uint8, n)
		for i := range values {
			values[i] = r.NormFloat64()
			mask[i] = uint8(i % 3 % 2)
		}
		mask[0], mask[n-1] = stages.Ignored, stages.Ignored
		maps = append(maps, stages.NewTensor(values, 1, n).Encode())
		masks = append(masks, stages.NewTensor(mask, 1, n).Encode())
	}
	return maps, masks
}

// TestMapsOfTexts runs the metrics of maps alone on maps of texts of several lengths: each is defined, and
// the same as that of the map alone.
func TestMapsOfTexts(t *testing.T) {
	lengths := []int{9, 7, 30, 9, 6}
	maps, masks := mixedMaps(1, lengths...)
	other, _ := mixedMaps(2, lengths...)
	for _, s := range []stages.Stage{Compactness, RankCorrelation, IoU, MassAccuracy, RankAccuracy,
		PointingGame, ROCAUC, AveragePrecision, TokenF1, WeightedLocalisation, EffectiveHeatRatio, MSTC,
		Sensitivity} {
		in := func(i int) map[string][]stages.Data {
			at := func(all [][]byte) []stages.Data {
				if i >= 0 {
					all = all[i : i+1]
				}
				return []stages.Data{stagetest.Items(nil, all...)}
			}
			out := map[string][]stages.Data{}
			for _, p := range s.Inputs {
				switch {
				case p.Type == stages.Masks:
					out[p.Name] = at(masks)
				case p.Type == stages.Maps && len(out) == 0:
					out[p.Name] = at(maps)
				case p.Type == stages.Maps:
					out[p.Name] = at(other)
				}
			}
			return out
		}
		all, err := stagetest.Try(s, s.NewParams(), in(-1))
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		for port, payloads := range all.Payloads {
			for i := range lengths {
				alone := stagetest.Run(t, s, nil, in(i)).Payloads[port][0]
				x, y := numbersOf(t, [][]byte{payloads[i]})[0], numbersOf(t, [][]byte{alone})[0]
				if x != y || math.IsNaN(x) {
					t.Errorf("%s.%s of text %d: %v, alone %v", s.Name, port, i, x, y)
				}
			}
		}
	}
}

// TestSubsetsOfTokens checks that special tokens don't count in metrics of replaced subsets, whatever a map
// has there.
func TestSubsetsOfTokens(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	special := []bool{true, false, false, true, false, false, false, true}
	u := metric.Tokens(special)
	s := metric.NewSubsets(20, u.Count)
	responses := make([]float64, 3*22)
	for i := range s.Count {
		for k := range u.Count {
			if r.Float64() < 0.5 {
				s.Add(i, k)
			}
		}
	}
	for i := range responses {
		responses[i] = r.Float64()
	}
	values := make([]float64, len(special))
	for i := range values {
		values[i] = r.NormFloat64()
	}
	changed := slices.Clone(values)
	changed[0], changed[3] = 50, -1000
	facts := stages.Facts{"draw": "bernoulli", "responses": "probability,logit,correct", "repeats": "1",
		"unit": "token"}
	for _, stage := range []stages.Stage{MuFidelity, Infidelity} {
		score := func(values []float64) float64 {
			p := stage.NewParams()
			if q, ok := p.(*InfidelityParams); ok {
				q.Map, q.Output = "contribution", "logit"
			}
			items := func(x stages.Tensor) []stages.Data {
				return []stages.Data{stagetest.Items(facts, x.Encode())}
			}
			in := map[string][]stages.Data{
				"maps":      items(stages.NewTensor(slices.Clone(values), 1, len(values))),
				"subsets":   {stagetest.Items(facts, s.Encode())},
				"responses": items(stages.NewTensor(slices.Clone(responses), 3, 22)),
				"units":     items(stages.NewTensor(u.Numbers(), 1, len(special))),
			}
			if stage.Input("differences") != nil {
				in["differences"] = items(stages.NewTensor(make([]float32, len(special)), 1, 1, len(special)))
			}
			return numbersOf(t, stagetest.Run(t, stage, p, in).Payloads["scores"])[0]
		}
		if a, b := score(values), score(changed); a != b || math.IsNaN(a) {
			t.Errorf("%s: %v, and %v with other relevance of special tokens", stage.Name, a, b)
		}
	}
	if _, err := Infidelity.Facts(&InfidelityParams{"logit", "gradient"}, map[string]stages.Facts{
		"subsets": {"unit": "token", "repeats": "1"}, "differences": {"draws": "1"}}); err == nil {
		t.Error("infidelity takes gradients of texts")
	}
}

// TestPopulationsOfTexts checks that metrics which compare the maps of a set refuse maps of several lengths.
func TestPopulationsOfTexts(t *testing.T) {
	maps, _ := mixedMaps(1, 9, 5, 30)
	var targets [][]byte
	for range maps {
		targets = append(targets, stages.NewTensor([]int64{0}, 1).Encode())
	}
	for _, s := range []stages.Stage{Sufficiency, Consistency} {
		_, err := stagetest.Try(s, s.NewParams(), map[string][]stages.Data{
			"maps":    {stagetest.Items(nil, maps...)},
			"targets": {stagetest.Items(nil, targets...)}})
		if err == nil || !strings.Contains(err.Error(), "the maps have different sizes") {
			t.Errorf("%s, maps of several lengths: %v", s.Name, err)
		}
	}
}

package metric

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/npy"
)

// The official numbers of mas_rise, reduced by testdata/reduce.py. A file's "curves" are [insertion,
// deletion] × [mas, ap, dr, mr, rise_raw] × points, its "areas" [insertion, deletion] × [mas, rise_norm,
// rise_raw]; NaN where the official run didn't keep one.
const (
	mas = iota
	ap
	dr
	mr
	raw
)

type official struct {
	t      *testing.T
	arrays map[string]npy.Array
}

func read(t *testing.T) official {
	t.Helper()
	arrays := golden.Arrays(t, "testdata/mas_rise.npz")
	return official{t, arrays}
}

func (o official) floats(key string) []float64 {
	o.t.Helper()
	a, ok := o.arrays[key]
	if !ok {
		o.t.Fatalf("no array %q", key)
	}
	return a.Float64s()
}

func (o official) curve(name string, p Protocol, kind int) []float64 {
	n := o.arrays[name+".curves"].Shape[2]
	all := o.floats(name + ".curves")
	from := (int(p)*5 + kind) * n
	return all[from : from+n]
}

// names lists the files with an order: of smallcnn, gapcnn, gapcnn64 and the picture of zeros.
func (o official) names() []string {
	var names []string
	for key := range o.arrays {
		if name, ok := strings.CutSuffix(key, ".step"); ok {
			names = append(names, name)
		}
	}
	return names
}

func (o official) order(name string) []int {
	base, _, _ := strings.Cut(name, "_step")
	var order []int
	for _, i := range o.arrays[base+".order"].Int64s() {
		order = append(order, int(i))
	}
	return order
}

func (o official) values(name string) []float64 {
	base, _, _ := strings.Cut(name, "_step")
	return o.floats(base + ".map")
}

func (o official) near(what string, got, want []float64, tolerance float64) {
	o.t.Helper()
	if len(got) != len(want) {
		o.t.Errorf("%s: %d points, want %d", what, len(got), len(want))
		return
	}
	for k := range want {
		if d := math.Abs(got[k] - want[k]); d > tolerance*math.Max(1, math.Abs(want[k])) ||
			math.IsNaN(got[k]) != math.IsNaN(want[k]) {
			o.t.Errorf("%s: point %d is %v, want %v", what, k, got[k], want[k])
			return
		}
	}
}

// The official code sums float32 maps in float32 and takes the ends of the response from forward passes of
// another batch size; both differ from float64 arithmetic on the stored curve by this much.
const official32 = 2e-6

// TestGoldenCurves follows the official curves step by step, each from the official result of the step
// before, and once from the raw curve to the score: baselines_, edge_zero_image_, smallcnn_, gapcnn_ and
// gapcnn64_ .npz.
func TestGoldenCurves(t *testing.T) {
	o := read(t)
	names := o.names()
	if len(names) != 37 {
		t.Errorf("%d official runs, want 37", len(names))
	}
	for _, name := range names {
		step := int(o.floats(name + ".step")[0])
		for _, p := range []Protocol{Insertion, Deletion} {
			what := name + " " + p.String()
			wantMAS, wantMR, wantDR := o.curve(name, p, mas), o.curve(name, p, mr), o.curve(name, p, dr)

			o.near(what+": density response", DensityResponse(o.values(name), o.order(name), step, p), wantDR,
				official32)
			curve, penalty, defined := Penalise(wantMR, wantDR, p)
			o.near(what+": penalty", penalty, o.curve(name, p, ap), 1e-12)
			o.near(what+": curve", curve, wantMAS, 1e-12)
			undefined := strings.Contains(name, "zero")
			if defined == undefined {
				t.Errorf("%s: defined %v", what, defined)
			}

			area := o.floats(name + ".areas")[int(p)*3:]
			official := func(k int, got, tolerance float64) {
				t.Helper()
				if want := area[k]; !math.IsNaN(want) && !(math.Abs(got-want) <= tolerance) {
					t.Errorf("%s: area %d is %v, want %v", what, k, got, want)
				}
			}
			official(0, Area(wantMAS), 1e-12)
			official(1, Area(wantMR), 1e-12)

			response := o.curve(name, p, raw)
			if math.IsNaN(response[0]) {
				continue // not kept
			}
			official(2, Area(response), 1e-12)
			monotone, ok := MonotoneOf(response, p)
			if !ok {
				t.Errorf("%s: the response is undefined", what)
			}
			o.near(what+": monotone response", monotone, wantMR, official32)
			curve, _, _ = Penalise(monotone, DensityResponse(o.values(name), o.order(name), step, p), p)
			// The stretch divides by the range of the curve, which magnifies a little.
			official(0, Area(curve), 2e-5)
			official(1, Area(monotone), official32)
		}
	}
}

func TestGoldenBaselines(t *testing.T) {
	o := read(t)
	values := o.floats("baselines_smallcnn_img2.map")
	for _, baseline := range []string{"mean_R101", "mean_VIT", "rand_fixed"} {
		name := "baselines_smallcnn_img2." + baseline
		for _, p := range []Protocol{Insertion, Deletion} {
			got := DensityResponse(values, Order(values), 32, p)
			o.near(name+": density response", got, o.curve(name, p, dr), official32)
			curve, _, defined := Penalise(o.curve(name, p, mr), got, p)
			if !defined {
				t.Errorf("%s is undefined", name)
			}
			o.near(name, curve, o.curve(name, p, mas), 2e-5)
		}
	}
}

// TestGoldenOrder holds Order against the official order, pixel by pixel where all values differ, by value
// where the official sort leaves ties to chance.
func TestGoldenOrder(t *testing.T) {
	o := read(t)
	for _, name := range o.names() {
		values, want := o.values(name), o.order(name)
		got := Order(values)
		tied := strings.Contains(name, "ties") || strings.Contains(name, "const") ||
			strings.Contains(name, "zero_")
		for k := range want {
			if values[got[k]] != values[want[k]] || !tied && got[k] != want[k] {
				t.Errorf("%s: place %d has pixel %d of value %v, want %d of %v", name, k, got[k],
					values[got[k]], want[k], values[want[k]])
				break
			}
		}
	}
}

// TestGoldenSummary recomputes summary.json, the areas of all runs rounded to six digits, from the raw
// curves: MAS insertion and deletion, raw RISE insertion and deletion. It lists a third net too, of which no
// curves were kept.
func TestGoldenSummary(t *testing.T) {
	b, err := os.ReadFile("testdata/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]any
	if err := json.Unmarshal(b, &lines); err != nil {
		t.Fatal(err)
	}
	o := read(t)
	compared := 0
	for _, line := range lines {
		name := line[0].(string)
		if strings.HasPrefix(name, "smallresnet_") {
			continue
		}
		compared++
		values := o.values(name)
		step := int(o.floats(name + ".step")[0])
		var got [4]float64
		for _, p := range []Protocol{Insertion, Deletion} {
			response := o.curve(name, p, raw)
			monotone, _ := MonotoneOf(response, p)
			curve, _, _ := Penalise(monotone, DensityResponse(values, o.order(name), step, p), p)
			got[p], got[2+p] = Area(curve), Area(response)
		}
		for k, want := range line[1:] {
			if d := math.Abs(got[k] - want.(float64)); !(d <= 2e-5) {
				t.Errorf("%s: number %d is %v, want %v", name, k, got[k], want)
			}
		}
	}
	if compared != 34 {
		t.Errorf("compared %d runs, want 34", compared)
	}
}

// TestGoldenAblation takes the areas under the ablation curves of perturbation_reference, morf_lerf.npz: of
// accuracy over six images, and of their mean probability. (The images themselves are left out of the copy
// here.)
func TestGoldenAblation(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/morf_lerf.npz")
	for _, order := range []string{"morf", "lerf"} {
		probability := arrays[order+"_prob"] // points × images
		images := probability.Shape[1]
		p := probability.Float64s()
		mean, sum := make([]float64, probability.Shape[0]), 0.0
		for i := range images {
			one := make([]float64, len(mean))
			for k := range mean {
				one[k] = p[k*images+i]
				mean[k] += one[k] / float64(images)
			}
			sum += Area(one)
		}
		for _, c := range []struct {
			what string
			got  float64
			key  string
		}{
			{"accuracy", Area(arrays[order+"_acc"].Float64s()), order + "_auc_acc"},
			{"mean probability", Area(mean), order + "_auc_prob"},
			{"mean of the images' areas", sum / float64(images), order + "_auc_prob"},
		} {
			if want := arrays[c.key].Float64s()[0]; !(math.Abs(c.got-want) <= 1e-7) {
				t.Errorf("%s, %s: area %v, want %v", order, c.what, c.got, want)
			}
		}
	}
}

package attribute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
)

// TestOfficialGuidedIG holds guided integrated gradients against the authors' code and that of MAS. Paths are
// chaotic: where a derivative's last digit decides which values move, maps part, as those of the two codes do
// on the same image. There only the size of the map is held.
func TestOfficialGuidedIG(t *testing.T) {
	chaotic := []string{"smallcnn_img0 mas_default_steps50", "smallcnn_img0 mas_steps50_frac0p5_max1",
		"smallcnn_img2 mas_steps50_frac0p5_max1", "smallcnn_img2 pair_steps50_frac0p5_max1"}
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "ig_family", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		for key, p := range map[string]GuidedIGParams{
			"pair_default_steps50":      {Variant: "paper", Fraction: 0.25, MaxDistance: 0.02},
			"pair_steps50_frac0p5_max1": {Variant: "paper", Fraction: 0.5, MaxDistance: 1},
			"mas_default_steps50":       {Variant: "official-mas", Fraction: 0.25, MaxDistance: 0.02},
			"mas_steps50_frac0p5_max1":  {Variant: "official-mas", Fraction: 0.5, MaxDistance: 1},
		} {
			p.Tapped, p.Steps, p.Baseline = probable(), 50, "zero"
			p.Reduce = "none"
			got := doubles(oneMap(t, GuidedIG, &p, model, a["x"].Float32s(), []int{3, 32, 32},
				a["target"].Int64s()[0]))
			want, what := a["gig_"+key].Float64s(), file+" "+key
			apart := make([]float64, len(want))
			for i, v := range want {
				apart[i] = got[i] - v
			}
			if slices.Contains(chaotic, what) {
				if share := mass(got) / mass(want); share < 0.7 || share > 1.4 {
					t.Errorf("%s: magnitudes add up to %v, want about %v", what, mass(got), mass(want))
				}
			} else if !(mass(apart) <= 1e-4*mass(want)) {
				t.Errorf("%s: deviations add up to %v of %v", what, mass(apart), mass(want))
			}
		}
	}
}

func mass(values []float64) float64 {
	m := 0.0
	for _, v := range values {
		m += math.Abs(v)
	}
	return m
}

func sum(values []float64) float64 {
	s := 0.0
	for _, v := range values {
		s += v
	}
	return s
}

// TestGuidedIGWithoutLeeway checks that a path that may not leave the straight line gives integrated
// gradients by the left rule.
func TestGuidedIGWithoutLeeway(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "imagenet")
	for _, layer := range []string{"input", "middle"} {
		for _, variant := range []string{"paper", "official-mas"} {
			p := &GuidedIGParams{plain(tappedAt(layer)), variant, 16, 0.3, 0, "black"}
			straight := mapsOf(t, IntegratedGradients, &IntegratedGradientsParams{plain(tappedAt(layer)), 16,
				"left",
				"black"}, in)
			for k, m := range mapsOf(t, GuidedIG, p, in) {
				near(t, fmt.Sprintf("%s, %s, item %d", layer, variant, k), singles(m), singles(straight[k]),
					1e-4)
			}
		}
	}
}

// TestGuidedPathIsComplete checks that what many short steps gather sums to the difference of a function's
// values at the ends, whatever way they take.
func TestGuidedPathIsComplete(t *testing.T) {
	from, to := []float32{0, -1, 2, 0.5}, []float32{1, 3, -2, 0.5}
	value := func(x []float32) float64 {
		return float64(x[0]*x[1]) + math.Sin(float64(2*x[2])) + float64(x[1]*x[1]*x[3])
	}
	for _, distance := range []float64{0, 0.1, 1} {
		for name, w := range map[string]guidedPath{
			"float64": newGuided[float64](GuidedIGParams{Steps: 3000, Fraction: 0.25, MaxDistance: distance},
				from, to),
			"float32": newGuided[float32](GuidedIGParams{Steps: 3000, Fraction: 0.25, MaxDistance: distance},
				from, to),
		} {
			x := make([]float32, 4)
			for k := range 3000 {
				w.position(x)
				w.step(k, []float32{x[1], x[0] + 2*x[1]*x[3], float32(2 * math.Cos(float64(2*x[2]))),
					x[1] * x[1]})
			}
			w.position(x)
			if got, want := sum(w.attribution()), value(to)-value(from); !(math.Abs(got-want) <= 0.02) {
				t.Errorf("%s, distance %v: %v is gathered, want %v", name, distance, got, want)
			}
			for i, v := range x {
				if !(math.Abs(float64(v-to[i])) <= 1e-5) {
					t.Errorf("%s, distance %v: the path ends at %v", name, distance, x)
				}
			}
		}
	}
}

// TestGuidedPathIsSlow holds the path against the steps as the authors write them, with a quantile of all
// magnitudes.
func TestGuidedPathIsSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		n := 3 + r.IntN(30)
		from, to := make([]float32, n), make([]float32, n)
		for i := range from {
			from[i], to[i] = float32(r.IntN(4)), float32(r.IntN(4))
		}
		p := GuidedIGParams{Steps: 1 + r.IntN(6), Fraction: float64(r.IntN(5)) / 4,
			MaxDistance: []float64{0, 0.05, 0.3, 1}[r.IntN(4)]}
		fast := newGuided[float64](p, from, to)
		slow, gathered := doubles(from), make([]float64, n)
		for k := range p.Steps {
			gradient := make([]float32, n)
			for i := range gradient {
				gradient[i] = float32(r.IntN(9) - 4)
			}
			fast.step(k, gradient)
			slowStep(p, k, doubles(from), doubles(to), slow, doubles(gradient), gathered)
			for i := range slow {
				if !(math.Abs(slow[i]-fast.x[i]) <= 1e-12) || !(math.Abs(gathered[i]-fast.sum[i]) <= 1e-12) {
					t.Fatalf("%+v, step %d: at %v with %v, want %v with %v", p, k, fast.x, fast.sum, slow,
						gathered)
				}
			}
		}
	}
}

// slowStep goes one step from x and adds what it gathers.
func slowStep(p GuidedIGParams, k int, from, to, x, gradient, gathered []float64) {
	n := len(x)
	alpha := float64(k+1) / float64(p.Steps)
	low, high := max(alpha-p.MaxDistance, 0), min(alpha+p.MaxDistance, 1)
	far := func() (d, total float64) {
		for i := range x {
			d += math.Abs(x[i] - to[i])
			total += math.Abs(from[i] - to[i])
		}
		return d, total
	}
	stuck := make([]bool, n)
	for {
		before := append([]float64(nil), x...)
		collect := func() {
			for i := range x {
				gathered[i] += (x[i] - before[i]) * gradient[i]
			}
		}
		for i := range x {
			if to[i] != from[i] && (x[i]-from[i])/(to[i]-from[i]) < low {
				x[i] = from[i] + (to[i]-from[i])*low
			}
		}
		d, total := far()
		goal := total * (1 - alpha)
		if math.Abs(d-goal) < 1e-9 {
			collect()
			return
		}
		size := make([]float64, n)
		left := 0
		for i := range x {
			stuck[i] = stuck[i] || x[i] == from[i]+(to[i]-from[i])*high
			size[i] = math.Abs(gradient[i])
			if stuck[i] {
				size[i] = math.Inf(1)
			} else {
				left++
			}
		}
		sorted := append([]float64(nil), size...)
		sort.Float64s(sorted)
		threshold, possible := sorted[int(p.Fraction*float64(n-1))], 0.0
		for i := range x {
			if size[i] <= threshold && !stuck[i] {
				possible += math.Abs(x[i] - (from[i] + (to[i]-from[i])*high))
			}
		}
		share := min(1, (d-goal)/possible)
		for i := range x {
			if size[i] <= threshold && !stuck[i] {
				x[i] += (from[i] + (to[i]-from[i])*high - x[i]) * share
				if share == 1 {
					x[i] = from[i] + (to[i]-from[i])*high
				}
			}
		}
		collect()
		if left == 0 || (d-goal)/possible <= 1 {
			return
		}
	}
}

// TestGuidedPath holds the steps of a path worked out by hand.
func TestGuidedPath(t *testing.T) {
	p := GuidedIGParams{Steps: 2, Fraction: 0.5, MaxDistance: 1}
	g := newGuided[float64](p, []float32{0, 0, 0, 5}, []float32{1, 2, -1, 5})
	at := make([]float32, 4)
	// Half of the way is 2: values 3 and 0, and of those that the quantile then takes, value 2 goes on alone
	// until the sum is reached.
	g.step(0, []float32{2, 9, 3, 0.5})
	g.position(at)
	if want := []float32{1, 0, -1, 5}; !equal(at, want) {
		t.Errorf("after one step at %v, want %v", at, want)
	}
	g.step(1, []float32{1, 2, 3, 4})
	g.position(at)
	if want := []float32{1, 2, -1, 5}; !equal(at, want) {
		t.Errorf("after two steps at %v, want %v", at, want)
	}
	if want := []float64{2, 4, -3, 0}; fmt.Sprint(g.attribution()) != fmt.Sprint(want) {
		t.Errorf("gathered %v, want %v", g.attribution(), want)
	}
	nowhere := newGuided[float32](p, []float32{1}, []float32{1})
	nowhere.step(0, []float32{7})
	if nowhere.attribution()[0] != 0 {
		t.Error("a path without length gathers something")
	}
	undefined := newGuided[float64](p, []float32{0, 0}, []float32{1, float32(math.NaN())})
	undefined.step(0, []float32{1, 2}) // ends
}

func equal(a, b []float32) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

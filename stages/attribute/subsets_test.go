package attribute

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// officialSubsets are values of captum 0.9.0, shap 0.51.0 and lime 0.2.0.1: see testdata/subsets.py.
type officialSubsets struct {
	Net struct {
		Shown           []string
		Orders          [][]int
		KernelSHAP      []float64 `json:"kernel-shap"`
		FeatureAblation []float64 `json:"feature-ablation"`
		ShapleySampling []float64 `json:"shapley-sampling"`
	}
	Games struct {
		Exact, Captum []float64
		Kernel        struct {
			Shown           []string
			Weights, Values []float64
		}
	}
	LIME []struct {
		Features int
		Shown    []string
		Values   []float64
		Fit      float64
	}
}

func readSubsets(t *testing.T) (official officialSubsets) {
	t.Helper()
	b, err := os.ReadFile("testdata/subsets.json")
	if err == nil {
		err = json.Unmarshal(b, &official)
	}
	if err != nil {
		t.Fatal(err)
	}
	return official
}

// hyperbolic is the function of shown units that testdata/subsets.py has.
func hyperbolic(shown []bool) (y float64) {
	for k := range 5 {
		sum := 0.0
		for j, m := range shown {
			if m {
				sum += math.Sin(float64(1+7*k+3*j)) / math.Sqrt(float64(len(shown)))
			}
		}
		y += math.Tanh(sum)
	}
	return y
}

// gameOn returns the game of a function on coalitions, texts with 1 for each unit that is shown.
func gameOn(f func(shown []bool) float64, coalitions []string) game {
	units := len(coalitions[0])
	all, none := slices.Repeat([]bool{true}, units), make([]bool, units)
	g := game{Subsets: metric.NewSubsets(len(coalitions), units), image: f(all), hidden: f(none)}
	for row, text := range coalitions {
		shown := make([]bool, units)
		for k := range shown {
			if shown[k] = text[k] == '1'; !shown[k] {
				g.Add(row, k)
			}
		}
		g.responses = append(g.responses, f(shown))
	}
	return g
}

// proper returns all coalitions of units but that of all and of none.
func proper(units int) (all []string) {
	for k := 1; k < 1<<units-1; k++ {
		all = append(all, fmt.Sprintf("%0*b", units, k))
	}
	return all
}

// shapley computes Shapley values by their definition.
func shapley(f func(shown []bool) float64, units int) []float64 {
	factorial := func(n int) (p float64) {
		p = 1
		for k := 2; k <= n; k++ {
			p *= float64(k)
		}
		return p
	}
	values := make([]float64, units)
	for set := range 1 << units {
		shown := make([]bool, units)
		for k := range shown {
			shown[k] = set>>k&1 == 1
		}
		size := bits.OnesCount(uint(set))
		y := f(shown)
		for k, in := range shown {
			if in {
				values[k] += factorial(size-1) * factorial(units-size) / factorial(units) * y
			} else {
				values[k] -= factorial(size) * factorial(units-size-1) / factorial(units) * y
			}
		}
	}
	return values
}

func close64(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for k := range want {
		if !(math.Abs(got[k]-want[k]) <= tolerance) {
			t.Errorf("%s: value %d is %v, want %v", what, k, got[k], want[k])
		}
	}
}

// TestKernelSHAPExact checks that the regression on all coalitions, weighted by the Shapley kernel, has the
// Shapley values, those of shap's KernelExplainer and of captum's ShapleyValues.
func TestKernelSHAPExact(t *testing.T) {
	const units = 6
	want := shapley(hyperbolic, units)
	games := readSubsets(t).Games
	close64(t, "shap's", games.Exact, want, 1e-9)
	close64(t, "captum's", games.Captum, want, 2e-6) // it adds up in single precision
	g := gameOn(hyperbolic, proper(units))
	n := newNormal(units)
	for row, y := range g.responses {
		shown := g.shown(row, nil)
		k, choices := len(shown), 1.0
		for i := range k {
			choices *= float64(units-i) / float64(i+1)
		}
		n.add(shown, (units-1)/(choices*float64(k*(units-k))), y-g.hidden)
	}
	close64(t, "all coalitions", n.constrained(g.image-g.hidden), want, 1e-12)
}

// TestOfficialKernelSHAP holds the regression against shap's on the subsets and weights that it drew, and
// against captum's, whose sum isn't exact, on a net.
func TestOfficialKernelSHAP(t *testing.T) {
	official := readSubsets(t)
	k := official.Games.Kernel
	g := gameOn(hyperbolic, k.Shown)
	n := newNormal(g.Units)
	for row, y := range g.responses {
		n.add(g.shown(row, nil), k.Weights[row], y-g.hidden)
	}
	close64(t, "shap's subsets", n.constrained(g.image-g.hidden), k.Values, 1e-9)

	f := vggOnSquares(t)
	got, _ := KernelSHAPParams{}.solve(gameOn(f, official.Net.Shown))
	close64(t, "captum's subsets", got, official.Net.KernelSHAP, 2e-5)
}

// vggOnSquares returns the logit of class 2 of the quickstart's vgg for an image of sines of which some of 16
// squares are shown, with zeros behind.
func vggOnSquares(t *testing.T) func(shown []bool) float64 {
	t.Helper()
	n, x := vgg(t)
	slot := stagetest.NewSlot()
	t.Cleanup(func() { stagetest.Release(slot) })
	m, err := n.Masked(t.Context(), slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	m.Set(x, make([]float32, len(x)))
	u := metric.Regions(n.Height, n.Width, 16)
	return func(shown []bool) float64 {
		mask := m.Mask(0)
		clear(mask)
		for i, k := range u.Of {
			if shown[k] {
				mask[i] = 1
			}
		}
		if err := m.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return n.Logit(m.Row(0), program.Target{Class: 2, Minus: -1})
	}
}

// vgg returns the quickstart's vgg and an image of sines.
func vgg(t *testing.T) (*program.Net, []float32) {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "experiments", "quickstart", "vgg.onnx")
	return modeltest.Net(t, modeltest.Model(t, model.ONNXParams{Path: path, Preset: "unit"})), sines(64)
}

// TestOfficialFeatureAblation holds drops against captum's.
func TestOfficialFeatureAblation(t *testing.T) {
	var single []string
	for k := range 16 {
		text := []byte("1111111111111111")
		text[k] = '0'
		single = append(single, string(text))
	}
	got, _ := FeatureAblationParams{}.solve(gameOn(vggOnSquares(t), single))
	close64(t, "captum's", got, readSubsets(t).Net.FeatureAblation, 2e-6)
}

// beginnings returns the coalitions of orders in which units are added to none: as they are replaced, the
// last one first.
func beginnings(orders [][]int) (all []string) {
	for _, order := range orders {
		text := slices.Repeat([]byte("1"), len(order))
		for k := len(order) - 1; k > 0; k-- {
			text[order[k]] = '0'
			all = append(all, string(text))
		}
	}
	return all
}

// TestOfficialShapleySampling holds mean drops against captum's on the orders that it drew.
func TestOfficialShapleySampling(t *testing.T) {
	official := readSubsets(t).Net
	got, _ := ShapleySamplingParams{}.solve(gameOn(vggOnSquares(t), beginnings(official.Orders)))
	close64(t, "captum's", got, official.ShapleySampling, 2e-6)
}

// TestShapleySamplingExact checks that all orders have the Shapley values.
func TestShapleySamplingExact(t *testing.T) {
	var orders [][]int
	var extend func(order []int)
	extend = func(order []int) {
		if len(order) == 5 {
			orders = append(orders, slices.Clone(order))
		}
		for k := range 5 {
			if !slices.Contains(order, k) {
				extend(append(order, k))
			}
		}
	}
	extend(nil)
	got, _ := ShapleySamplingParams{}.solve(gameOn(hyperbolic, beginnings(orders)))
	close64(t, "120 orders", got, shapley(hyperbolic, 5), 1e-12)
}

// TestOfficialLIME holds values and fit against those of lime's images, on the subsets that it drew: of all
// segments, of the 8 with the largest coefficients, and of 4 that it chose one by one.
func TestOfficialLIME(t *testing.T) {
	for _, o := range readSubsets(t).LIME {
		p := LIME.NewParams().(*LIMEParams)
		if p.Features = o.Features; o.Features > 10 {
			p.Features = 0
		}
		got, fit := p.solve(gameOn(hyperbolic, o.Shown))
		close64(t, fmt.Sprintf("%d features", o.Features), got, o.Values, 1e-9)
		close64(t, fmt.Sprintf("fit of %d features", o.Features), []float64{fit}, []float64{o.Fit}, 1e-9)
	}
}

// TestLIMEWeights computes weights by hand: a quarter of the units has the cosine ½.
func TestLIMEWeights(t *testing.T) {
	p := LIME.NewParams().(*LIMEParams)
	for shown, want := range map[int]float64{4: 1, 1: math.Exp(-2), 0: math.Exp(-8)} {
		if got := p.weight(shown, 4); math.Abs(got-want) > 1e-15 {
			t.Errorf("%d of 4 units are shown: %v, want %v", shown, got, want)
		}
	}
}

// drawnCoalitions returns random coalitions, each followed by its complement if paired.
func drawnCoalitions(units, count int, paired bool) (all []string) {
	r := rand.New(rand.NewPCG(3, 4))
	for range count {
		a, b := make([]byte, units), make([]byte, units)
		for k := range a {
			a[k] = '0' + byte(r.IntN(2))
			b[k] = '0' + '1' - a[k]
		}
		if all = append(all, string(a)); paired {
			all = append(all, string(b))
		}
	}
	return all
}

// TestSolversOfSums checks that each method returns the terms of a sum, of which a fit leaves nothing, and
// that a unit without effect has the value 0.
func TestSolversOfSums(t *testing.T) {
	const units = 9
	terms := []float64{3, -1, 0, 0.25, 7, -2.5, 1, 1, 4}
	f := func(shown []bool) float64 {
		y := 0.5
		for k, in := range shown {
			if in {
				y += terms[k]
			}
		}
		return y
	}
	single, orders := []string{}, [][]int{rand.New(rand.NewPCG(1, 2)).Perm(units)}
	for k := range units {
		text := slices.Repeat([]byte("1"), units)
		text[k] = '0'
		single = append(single, string(text))
	}
	lime := LIME.NewParams().(*LIMEParams)
	lime.Penalty = 0
	for name, tt := range map[string]struct {
		solver
		coalitions []string
	}{
		"kernel-shap":      {KernelSHAPParams{}, drawnCoalitions(units, 20, true)},
		"lime":             {lime, drawnCoalitions(units, 60, false)},
		"feature-ablation": {FeatureAblationParams{}, single},
		"shapley-sampling": {ShapleySamplingParams{}, beginnings(orders)},
	} {
		values, fit := tt.solve(gameOn(f, tt.coalitions))
		close64(t, name, values, terms, 1e-11)
		if name == "kernel-shap" || name == "lime" {
			close64(t, name+"'s fit", []float64{fit}, []float64{1}, 1e-12)
		}
	}
}

// TestShapleySums checks that values sum to the difference of the ends whatever is drawn.
func TestShapleySums(t *testing.T) {
	kernel, _ := KernelSHAPParams{}.solve(gameOn(hyperbolic, drawnCoalitions(8, 30, true)))
	sampling, _ := ShapleySamplingParams{}.solve(gameOn(hyperbolic, beginnings([][]int{{3, 1, 0, 2}})))
	for _, values := range [][]float64{kernel, sampling} {
		all, none := slices.Repeat([]bool{true}, len(values)), make([]bool, len(values))
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		if want := hyperbolic(all) - hyperbolic(none); !(math.Abs(sum-want) <= 1e-12) {
			t.Errorf("%d values sum to %v, want %v", len(values), sum, want)
		}
	}
}

// TestSolversUndetermined checks that too few coalitions have no values, and what a single unit has.
func TestSolversUndetermined(t *testing.T) {
	values, _ := KernelSHAPParams{}.solve(gameOn(hyperbolic, drawnCoalitions(9, 4, true)))
	if values != nil {
		t.Errorf("4 pairs determine 9 values: %v", values)
	}
	lime := LIME.NewParams().(*LIMEParams)
	lime.Penalty = 0
	if values, _ := lime.solve(gameOn(hyperbolic, drawnCoalitions(9, 5, false))); values != nil {
		t.Errorf("5 coalitions determine 9 values: %v", values)
	}
	// Units 0 and 1 are always shown together.
	twins := game{Subsets: metric.NewSubsets(2, 3), responses: []float64{2, 1}, image: 3}
	twins.Add(0, 0)
	twins.Add(0, 1)
	twins.Add(1, 2)
	for name, s := range map[string]solver{"kernel-shap": KernelSHAPParams{}, "lime": lime} {
		if values, fit := s.solve(twins); values != nil || !math.IsNaN(fit) {
			t.Errorf("%s tells apart two units that are shown together: %v", name, values)
		}
	}
	one := game{Subsets: metric.NewSubsets(0, 1), image: 3, hidden: 1}
	for name, s := range map[string]solver{"kernel-shap": KernelSHAPParams{},
		"shapley-sampling": ShapleySamplingParams{}} {
		values, _ := s.solve(one)
		close64(t, name+" of one unit", values, []float64{2}, 0)
	}
}

// TestSolversConstant checks that units of a constant response have the value 0, and no fit.
func TestSolversConstant(t *testing.T) {
	constant := func([]bool) float64 { return 0.1 }
	for name, s := range map[string]solver{"kernel-shap": KernelSHAPParams{},
		"lime": LIME.NewParams().(*LIMEParams)} {
		values, fit := s.solve(gameOn(constant, drawnCoalitions(5, 30, true)))
		close64(t, name, values, make([]float64, 5), 1e-15)
		if !math.IsNaN(fit) {
			t.Errorf("%s has the fit %v", name, fit)
		}
	}
}

// TestSolverMap checks that pixels have the value of their unit, or equal parts of it.
func TestSolverMap(t *testing.T) {
	sets := metric.NewSubsets(3, 3)
	for k := range 3 {
		sets.Add(k, k)
	}
	in := map[string][]stages.Data{
		"model":   {stagetest.Value(nil, nil)},
		"images":  {stagetest.Items(nil, nil)},
		"units":   {stagetest.Items(nil, stages.NewTensor([]uint32{0, 0, 1, 1, 1, 2}, 2, 3).Encode())},
		"subsets": {stagetest.Items(stages.Facts{"draw": "single", "repeats": "1"}, sets.Encode())},
		"responses": {stagetest.Items(stages.Facts{"responses": "probability,logit,correct"},
			stages.NewTensor([]float64{.9, .8, .6, .9, .1, 9, 8, 6, 9, 1, 1, 1, 1, 1, 0}, 3, 5).Encode())},
	}
	p := FeatureAblation.NewParams().(*FeatureAblationParams)
	close64(t, "logits", mapsOf(t, FeatureAblation, p, in)[0], []float64{1, 1, 3, 3, 3, 0}, 1e-6)
	p.Share, p.Output = true, "probability"
	close64(t, "shares", mapsOf(t, FeatureAblation, p, in)[0], []float64{.05, .05, .1, .1, .1, 0}, 1e-7)
	gap := stages.NewTensor([]uint32{0, 0, 1, 1, 1, 3}, 2, 3).Encode()
	in["units"] = []stages.Data{stagetest.Items(nil, gap)}
	if _, err := stagetest.Try(FeatureAblation, p, in); err == nil ||
		!strings.Contains(err.Error(), "port units: no pixel is of unit 2 of 4") {
		t.Errorf("units with a gap in their numbers: %v", err)
	}
}

// TestSolversOfManyUnits checks that a regression whose matrix wouldn't fit into memory is refused.
func TestSolversOfManyUnits(t *testing.T) {
	const side = 70
	numbers := make([]uint32, side*side)
	for k := range numbers {
		numbers[k] = uint32(k)
	}
	in := map[string][]stages.Data{
		"model":  {stagetest.Value(nil, nil)},
		"images": {stagetest.Items(nil, nil)},
		"units":  {stagetest.Items(nil, stages.NewTensor(numbers, side, side).Encode())},
		"subsets": {stagetest.Items(stages.Facts{"draw": "bernoulli", "repeats": "1"},
			metric.NewSubsets(1, side*side).Encode())},
		"responses": {stagetest.Items(stages.Facts{"responses": "probability,logit,correct"},
			stages.NewTensor(make([]float64, 9), 3, 3).Encode())},
	}
	_, err := stagetest.Try(LIME, nil, in)
	if err == nil || !strings.Contains(err.Error(), "4900 units is too large: give larger units") {
		t.Errorf("the error is %v", err)
	}
}

// TestSolversRefuse checks which parameters conflict with wired ports.
func TestSolversRefuse(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(p *KernelSHAPParams)
		wired  []string
		refuse bool
	}{
		"the defaults": {func(*KernelSHAPParams) {}, nil, false},
		"wired subsets": {func(p *KernelSHAPParams) { p.Output = "probability" },
			[]string{"subsets"}, false},
		"samples of wired subsets": {func(p *KernelSHAPParams) { p.Samples = 9 }, []string{"subsets"}, true},
		"target of wired subsets":  {func(p *KernelSHAPParams) { p.Target = "3" }, []string{"subsets"}, true},
		"segments without port":    {func(p *KernelSHAPParams) { p.Unit = "segment" }, nil, true},
		"port without segments":    {func(*KernelSHAPParams) {}, []string{"segments"}, true},
		"images without port":      {func(p *KernelSHAPParams) { p.Substrate = "images" }, nil, true},
		"a label without port":     {func(p *KernelSHAPParams) { p.Target = "label" }, nil, true},
		"subsets and targets":      {func(*KernelSHAPParams) {}, []string{"subsets", "targets"}, true},
		"subsets and substrates":   {func(*KernelSHAPParams) {}, []string{"subsets", "substrates"}, true},
		"subsets and segments":     {func(*KernelSHAPParams) {}, []string{"subsets", "segments"}, true},
		"subsets and labels":       {func(*KernelSHAPParams) {}, []string{"subsets", "labels"}, false},
	} {
		p := KernelSHAP.NewParams().(*KernelSHAPParams)
		tt.change(p)
		err := KernelSHAP.Check(p, func(port string) bool { return slices.Contains(tt.wired, port) })
		if (err != nil) != tt.refuse {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := LIME.NewParams().(*LIMEParams)
	p.P = 0.3
	if LIME.Check(p, func(port string) bool { return port == "subsets" }) == nil {
		t.Error("lime takes p of wired subsets")
	}
	facts := func(draw, repeats string) error {
		_, err := KernelSHAP.Facts(KernelSHAP.NewParams(),
			map[string]stages.Facts{"subsets": {"draw": draw, "repeats": repeats}})
		return err
	}
	if facts("shapley", "1") != nil || facts("bernoulli", "1") == nil || facts("shapley", "2") == nil {
		t.Error("kernel-shap takes subsets of another draw, or repeats")
	}
}

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

// A replacing is an image of one row of pixels, the unit of each, subsets of the units, and logits: of the
// image and of it with each subset replaced.
type replacing struct {
	units []uint32
	sets  [][]int
	image float64
	rows  []float64
}

// on answers with the weights of the units that are left.
func (r replacing) on(weights []float64) replacing {
	r.rows, r.image = nil, 0
	for _, w := range weights {
		r.image += w
	}
	for _, set := range r.sets {
		left := 0.0
		for k, w := range weights {
			if !slices.Contains(set, k) {
				left += w
			}
		}
		r.rows = append(r.rows, left)
	}
	return r
}

// data returns the inputs of a score, with these facts of the subsets, for images and a map of each.
func subsetData(f stages.Facts, images []replacing, maps [][]float64) map[string][]stages.Data {
	payloads := map[string][][]byte{}
	for i, r := range images {
		u := metric.NewSubsets(len(r.sets), int(slices.Max(r.units))+1)
		for k, set := range r.sets {
			for _, unit := range set {
				u.Add(k, unit)
			}
		}
		logits := append(append([]float64{r.image}, r.rows...), 0)
		var all []float64
		for range 3 {
			all = append(all, logits...)
		}
		for k := range logits { // probabilities differ from logits
			all[k] = logits[k] * logits[k]
		}
		payloads["subsets"] = append(payloads["subsets"], u.Encode())
		payloads["responses"] = append(payloads["responses"], stages.NewTensor(all, 3, len(logits)).Encode())
		payloads["units"] = append(payloads["units"], stages.NewTensor(r.units, 1, len(r.units)).Encode())
		payloads["maps"] = append(payloads["maps"], stages.NewTensor(maps[i], 1, len(maps[i])).Encode())
	}
	in := map[string][]stages.Data{}
	for port, p := range payloads {
		in[port] = []stages.Data{stagetest.Items(nil, p...)}
	}
	in["subsets"][0].Facts = f
	in["responses"][0].Facts = stages.Facts{"responses": "probability,logit,correct"}
	return in
}

func drawnBy(draw string) stages.Facts {
	return stages.Facts{"draw": draw, "repeats": "1", "sizes": "1", "shares": "0.5"}
}

// scored returns the scores on a port.
func subsetScores(t *testing.T, s stages.Stage, params any, port string, f stages.Facts, images []replacing,
	maps ...[]float64) []float64 {
	t.Helper()
	in := subsetData(f, images, maps)
	if s.Name == Infidelity.Name {
		params = &InfidelityParams{"logit", "contribution"}
	}
	if s.Input("differences") != nil {
		d := make([]float32, len(maps[0]))
		in["differences"] = []stages.Data{stagetest.Items(nil,
			slices.Repeat([][]byte{stages.NewTensor(d, 1, 1, len(d)).Encode()}, len(images))...)}
	}
	r := stagetest.Run(t, s, params, in)
	return scalars(t, stagetest.Items(nil, r.Payloads[port]...))
}

func alike(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*(1+math.Abs(b))
}

// four are three subsets of four pixels whose replacement makes the logit fall by 3, 8 and 2.
var four = replacing{[]uint32{0, 1, 2, 3}, [][]int{{0, 1}, {2, 3}, {0, 2}}, 10, []float64{7, 2, 8}}

func TestSubsetScores(t *testing.T) {
	a := []float64{1, 2, 3, 4} // 3, 7 and 4 on the subsets
	alone := replacing{[]uint32{0, 1, 1, 2}, [][]int{{0}, {1}, {2}}, 10, []float64{9, 2, 12}}
	twice := replacing{[]uint32{0, 1, 1, 2}, [][]int{{0}, {0}, {1}, {1}, {2}, {2}}, 10,
		[]float64{11, 9, 13, 9, 10, 6}}
	for name, tt := range map[string]struct {
		stage  stages.Stage
		params any
		port   string
		facts  stages.Facts
		image  replacing
		a      []float64
		want   float64
	}{
		"faithfulness correlation": {FaithfulnessCorrelation, nil, "scores", drawnBy("fixed"), four, a,
			111 / math.Sqrt(78*186)},
		"of probabilities": {FaithfulnessCorrelation,
			&FaithfulnessCorrelationParams{SubsetParams{"probability", metric.Signed}}, "scores",
			drawnBy("fixed"), four, a, // drops 51, 96, 36 around 61
			(-5*-10 + 7*35 + -2*-25) / math.Sqrt(78) / math.Sqrt(100+35*35+25*25)},
		"of magnitudes": {FaithfulnessCorrelation,
			&FaithfulnessCorrelationParams{SubsetParams{"logit", metric.Magnitude}}, "scores",
			drawnBy("fixed"), four, []float64{1, -2, -3, 4}, 111 / math.Sqrt(78*186)},
		"mu-fidelity": {MuFidelity, nil, "scores", drawnBy("bernoulli"), four, a, 0.5},
		// Units have 1, 5 and 4; drops are 1, 8 and −2.
		"single deletion": {SingleDeletion, nil, "scores", drawnBy("single"), alone, a, 0.5},
		"faithfulness estimate": {FaithfulnessEstimate, nil, "scores", drawnBy("single"), alone, a,
			(-7*-4 + 5*17 + 2*-13) / math.Sqrt(49+25+4) / math.Sqrt(16+289+169)},
		// Squares of changes have the means 1, 5 and 8.
		"monotonicity correlation": {MonotonicityCorrelation, nil, "scores",
			stages.Facts{"draw": "single", "repeats": "2"}, twice, a, 0.5},
		// Drops have the means 0, −1 and 2.
		"the mean over repeats": {FaithfulnessEstimate, nil, "scores",
			stages.Facts{"draw": "single", "repeats": "2"}, twice, a,
			(-7*-1 + 5*-4 + 2*5) / math.Sqrt(49+25+4) / math.Sqrt(1+16+25)},
		"infidelity":   {Infidelity, nil, "scores", drawnBy("fixed"), four, a, (0 + 1 + 4) / 3.},
		"its scale":    {Infidelity, nil, "scale", drawnBy("fixed"), four, a, 73. / 74},
		"at its scale": {Infidelity, nil, "scaled", drawnBy("fixed"), four, a, (77 - 73*73/74.) / 3},
	} {
		got := subsetScores(t, tt.stage, tt.params, tt.port, tt.facts, []replacing{tt.image}, tt.a)[0]
		if !alike(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestNonSensitivity counts by hand: of the units 0, relevant and inert, 1, relevant and active, 2, inert and
// not relevant, 3, active and not relevant, one half.
func TestNonSensitivity(t *testing.T) {
	image := replacing{[]uint32{0, 1, 2, 2, 3}, [][]int{{0}, {1}, {2}, {3}}, 1,
		[]float64{1, 0.5, 1 + 1e-7, 0.9}}
	for _, tt := range []struct {
		a     []float64
		count float64
	}{
		{[]float64{5, -3, 2e-5, 1e-5, -1e-6}, 2},
		{[]float64{5, -3, 6e-5, 1e-5, -1e-6}, 3},
		{[]float64{0, 0, 0, 0, 0}, 2},
		{[]float64{1, 1, 1, 1, 1}, 2},
		{[]float64{0, 1, 0, 0, 1}, 0},
		{[]float64{1, 0, 1, 1, 0}, 4},
		{[]float64{1, 0, nan, 1, 0}, nan},
	} {
		for port, of := range map[string]float64{"count": 1, "share": 0.25} {
			got := subsetScores(t, NonSensitivity, nil, port, drawnBy("single"), []replacing{image}, tt.a)[0]
			if want := of * tt.count; !alike(got, want) {
				t.Errorf("%s of %v is %v, want %v", port, tt.a, got, want)
			}
		}
	}
}

// TestSensitivityN compares each point of the curve with faithfulness correlation at that size.
func TestSensitivityN(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	image := random(r, 9, 2, 2, 2, 4, 4, 4)
	a := normals(r, 9)
	f := stages.Facts{"draw": "fixed", "repeats": "1", "shares": "0.25,0.45"}
	in := subsetData(f, []replacing{image}, [][]float64{a})
	got := stagetest.Run(t, SensitivityN, nil, in)
	curve := decode(t, got.Payloads["curves"][0])
	if len(curve) != 2 || got.Facts["curves"]["shares"] != "0.25,0.45" {
		t.Fatalf("a curve of %d points over shares %q", len(curve), got.Facts["curves"]["shares"])
	}
	for k := range 2 {
		part := image
		part.sets, part.rows = image.sets[3*k:3*k+3], image.rows[3*k:3*k+3]
		want := subsetScores(t, FaithfulnessCorrelation, nil, "scores", drawnBy("fixed"), []replacing{part},
			a)[0]
		if !alike(curve[k], want) {
			t.Errorf("size %d: %v, want %v", k, curve[k], want)
		}
	}
	check(t, got, "scores", 0, (curve[0]+curve[1])/2)
	if _, err := stagetest.Try(SensitivityN, nil, subsetData(stages.Facts{"draw": "fixed", "repeats": "1",
		"shares": "0.1,0.2,0.3,0.4"}, []replacing{image}, [][]float64{a})); err == nil {
		t.Error("six subsets are accepted as those of four sizes")
	}
	image.rows[3], image.rows[4], image.rows[5] = 1, 1, 1
	if x := subsetScores(t, SensitivityN, nil, "scores", f, []replacing{image}, a)[0]; !math.IsNaN(x) {
		t.Errorf("the mean is %v where one point is undefined", x)
	}
}

// random returns subsets of these sizes of n pixels, and responses.
func random(r *rand.Rand, n int, sizes ...int) replacing {
	image := replacing{image: r.NormFloat64()}
	for i := range n {
		image.units = append(image.units, uint32(i))
	}
	for _, size := range sizes {
		image.sets = append(image.sets, r.Perm(n)[:size])
		image.rows = append(image.rows, r.NormFloat64())
	}
	return image
}

func normals(r *rand.Rand, n int) (v []float64) {
	for range n {
		v = append(v, r.NormFloat64())
	}
	return v
}

// subsetStages are the metrics of subsets, with a draw that each takes, and the score of a
// linear net's exact contributions.
var subsetStages = []struct {
	stage stages.Stage
	port  string
	draw  string
	exact float64
}{
	{FaithfulnessCorrelation, "scores", "fixed", 1},
	{MuFidelity, "scores", "bernoulli", 1},
	{SensitivityN, "scores", "fixed", 1},
	{SingleDeletion, "scores", "single", 1},
	{FaithfulnessEstimate, "scores", "single", 1},
	{MonotonicityCorrelation, "scores", "single", 1},
	{NonSensitivity, "count", "single", 0},
	{Infidelity, "scores", "fixed", 0},
	{Infidelity, "scaled", "fixed", 0},
	{Infidelity, "scale", "fixed", 1},
}

// TestSubsetLaws checks what holds for any map: the score of a linear net's exact contributions; the same
// score for a multiple of a map, except for the infidelity as it is; none for a map that isn't finite, and
// for a constant map where units are of one size; the same scores in another order of images.
func TestSubsetLaws(t *testing.T) {
	for _, tt := range subsetStages {
		r := rand.New(rand.NewPCG(7, 8))
		var images []replacing
		var maps [][]float64
		for range 3 {
			image := random(r, 8, 3, 3, 3, 3, 3, 3, 3)
			if tt.draw == "single" {
				image = random(r, 8, 1, 1, 1, 1, 1, 1, 1, 1)
				for k := range image.sets {
					image.sets[k] = []int{k}
				}
			}
			images, maps = append(images, image), append(maps, normals(r, 8))
		}
		f := drawnBy(tt.draw)
		of := func(images []replacing, maps ...[]float64) []float64 {
			return subsetScores(t, tt.stage, nil, tt.port, f, images, maps...)
		}
		if got := of([]replacing{images[0].on(maps[0])}, maps[0])[0]; !(math.Abs(got-tt.exact) <= 1e-12) {
			t.Errorf("%s %s of exact contributions is %v, want %v", tt.stage.Name, tt.port, got, tt.exact)
		}
		scores := of(images, maps...)
		for i, got := range of(images, times(maps[0], 4), times(maps[1], 4), times(maps[2], 4)) {
			same := alike(got, scores[i])
			if tt.port == "scale" {
				same = alike(4*got, scores[i])
			}
			if moved := tt.stage.Name == Infidelity.Name && tt.port == "scores"; same == moved {
				t.Errorf("%s %s of four times a map is %v, of the map %v", tt.stage.Name, tt.port, got,
					scores[i])
			}
		}
		back := of([]replacing{images[2], images[1], images[0]}, maps[2], maps[1], maps[0])
		slices.Reverse(back)
		if !slices.Equal(back, scores) {
			t.Errorf("%s %s: %v, and %v in the reverse order", tt.stage.Name, tt.port, scores, back)
		}
		for _, bad := range []float64{nan, math.Inf(1)} {
			hole := slices.Clone(maps[0])
			hole[7] = bad
			if got := of(images[:1], hole)[0]; !math.IsNaN(got) {
				t.Errorf("%s %s of a map with %v is %v", tt.stage.Name, tt.port, bad, got)
			}
		}
		flat := of(images[:1], slices.Repeat([]float64{0.1}, 8))[0]
		if constant := tt.exact == 1 && tt.port == "scores"; constant != math.IsNaN(flat) {
			t.Errorf("%s %s of a constant map is %v", tt.stage.Name, tt.port, flat)
		}
		still := images[0]
		still.rows = slices.Repeat([]float64{0.3}, len(still.rows))
		if got := of([]replacing{still}, maps[0])[0]; tt.exact == 1 && tt.port == "scores" &&
			!math.IsNaN(got) {
			t.Errorf("%s %s of equal responses is %v", tt.stage.Name, tt.port, got)
		}
	}
}

// TestInfidelityOfGradients compares what a gradient predicts with values by hand.
func TestInfidelityOfGradients(t *testing.T) {
	in := subsetData(drawnBy("fixed"), []replacing{four}, [][]float64{{0, 0, 0, 0}})
	a := []float64{1, 2, 3, 4, -1, 0, 1, 0}
	d := []float32{2, 1, 0, 1, 1, 5, 4, 3}
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(a, 2, 1, 4).Encode())}
	in["differences"] = []stages.Data{stagetest.Items(stages.Facts{"draws": "1"},
		stages.NewTensor(d, 2, 1, 4).Encode())}
	for _, p := range []InfidelityParams{{"declared", "declared"}, {"logit", "declared"},
		{"declared", "gradient"}} {
		if _, err := stagetest.Try(Infidelity, &p, in); err == nil ||
			!strings.Contains(err.Error(), "declared") {
			t.Errorf("%+v: error %v, want that the method is to declare it", p, err)
		}
	}
	p := &InfidelityParams{"logit", "gradient"}
	r := stagetest.Run(t, Infidelity, p, in)
	// Pixels predict 1, 2, 4 and 4; subsets 3, 8 and 5 of drops 3, 8 and 2.
	check(t, r, "scores", 0, 3)
	check(t, r, "scale", 0, (9+64+10)/(9+64+25.))
	r = stagetest.Run(t, Infidelity, &InfidelityParams{"probability", "gradient"}, in) // drops 51, 96, 36
	check(t, r, "scores", 0, (48*48+88*88+31*31)/3.)
	summed := subsetData(drawnBy("fixed"), []replacing{four}, [][]float64{{0, 2, 4, 4}})
	in["maps"] = summed["maps"]
	if _, err := stagetest.Try(Infidelity, p, in); err == nil {
		t.Error("a gradient without channels is accepted")
	}
	of := map[string]stages.Facts{"subsets": {"repeats": "5"}, "differences": {"draws": "1"}}
	if _, err := Infidelity.Facts(p, of); err == nil {
		t.Error("a gradient is accepted of draws whose differences aren't known")
	}
	of = map[string]stages.Facts{"subsets": {"repeats": "5", "substrate": "noisy"},
		"differences": {"draws": "5"}}
	if _, err := Infidelity.Facts(p, of); err != nil {
		t.Error(err)
	}
	if _, err := Infidelity.Facts(&InfidelityParams{"logit", "contribution"}, of); err == nil {
		t.Error("a contribution is accepted of noise")
	}
}

// TestSubsetDrawIsKnown checks that a metric refuses subsets drawn in another way.
func TestSubsetDrawIsKnown(t *testing.T) {
	for _, tt := range subsetStages {
		in := map[string]stages.Facts{"subsets": {"draw": "shapley", "repeats": "1", "shares": "0.5"}}
		_, err := tt.stage.Facts(tt.stage.NewParams(), in)
		if (err == nil) != (tt.stage.Name == Infidelity.Name) {
			t.Errorf("%s takes subsets of a Shapley kernel: %v", tt.stage.Name, err)
		}
	}
	in := map[string]stages.Facts{"subsets": {"draw": "fixed", "repeats": "1", "sizes": "2",
		"shares": "0.1,0.5"}}
	if _, err := FaithfulnessCorrelation.Facts(FaithfulnessCorrelation.NewParams(), in); err == nil {
		t.Error("faithfulness correlation takes subsets of two sizes")
	}
}

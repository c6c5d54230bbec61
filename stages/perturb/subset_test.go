package perturb

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/stagetest"
)

func subsetParams(change func(*SubsetParams)) *SubsetParams {
	p := Subset.NewParams().(*SubsetParams)
	p.Substrate, p.Sizes = "zero", []int{3}
	change(p)
	return p
}

// unitsAndSubsets returns the units and the subsets of item i.
func unitsAndSubsets(t *testing.T, r stagetest.Result, i, height, width int) (metric.Units, metric.Subsets) {
	t.Helper()
	u, err := metric.Segments(r.Payloads["segments"][i], height, width)
	if err != nil {
		t.Fatal(err)
	}
	s, err := metric.DecodeSubsets(r.Payloads["subsets"][i], u.Count)
	if err != nil {
		t.Fatal(err)
	}
	return u, s
}

// TestSubsetReplaces reads from the logits of a net whose weights are powers of two which pixels are left,
// for every draw and unit.
func TestSubsetReplaces(t *testing.T) {
	m := linear(t, "unit", func(c, i int) float32 { return float32(int(1) << i * ((3 - c) / 3)) })
	segment := make([]uint32, linearN)
	for i := range segment {
		segment[i] = []uint32{900, 7, 7, 30, 2}[i%5]
	}
	for _, draw := range []string{"fixed", "bernoulli", "shapley", "single", "permutation"} {
		for _, unit := range []string{"pixel", "region", "segment"} {
			p := subsetParams(func(p *SubsetParams) {
				p.Draw, p.Unit, p.Region, p.Samples, p.Sizes = draw, unit, 2, 5, []int{1, 3}
			})
			in := linearInput(m, slices.Repeat([]float32{1}, 3*linearN), make([]uint32, linearN))
			delete(in, "maps")
			if unit == "segment" {
				in["segments"] = []stages.Data{stagetest.Items(nil,
					stages.NewTensor(segment, linearH, linearW).Encode())}
			}
			for port, d := range in { // the second item finds what the first has left in buffers
				if port != "model" {
					b, err := d[0].Load(0)
					if err != nil {
						t.Fatal(err)
					}
					in[port] = []stages.Data{stagetest.Items(nil, b, b)}
				}
			}
			r := stagetest.Run(t, Subset, p, in)
			u, s := unitsAndSubsets(t, r, 1, linearH, linearW)
			if want := map[string]int{"pixel": 24, "region": 6, "segment": 4}[unit]; u.Count != want {
				t.Fatalf("%d %ss, want %d", u.Count, unit, want)
			}
			if s.Count != p.rows(u.Count) {
				t.Fatalf("%d subsets, want %d", s.Count, p.rows(u.Count))
			}
			got := decode(t, r.Payloads["responses"][1])[s.Count+2 : 2*(s.Count+2)]
			for column := range s.Count + 2 {
				left := 0
				for i, k := range u.Of {
					if column == 0 || column <= s.Count && !s.Has(column-1, int(k)) {
						left += 1 << i
					}
				}
				if got[column] != float64(left) {
					t.Errorf("%s of %ss: column %d leaves %024b, want %024b", draw, unit, column,
						int(got[column]), left)
				}
			}
		}
	}
}

// TestSubsetDraws checks the laws of each draw.
func TestSubsetDraws(t *testing.T) {
	const units = 13
	draw := func(change func(*SubsetParams)) metric.Subsets {
		return subsetParams(change).subsets(rand.New(rand.NewPCG(1, 2)), units)
	}
	s := draw(func(p *SubsetParams) { p.Sizes, p.Samples, p.Shares = nil, 4, []float64{0, 0.5, 1} })
	for i := range s.Count {
		if want := []int{1, 6, 13}[i/4]; s.Size(i) != want {
			t.Errorf("fixed: subset %d has %d units, want %d", i, s.Size(i), want)
		}
	}
	s = draw(func(p *SubsetParams) { p.Draw = "single" })
	for i := range s.Count {
		if s.Size(i) != 1 || !s.Has(i, i) {
			t.Errorf("single: subset %d isn't unit %d", i, i)
		}
	}
	s = draw(func(p *SubsetParams) { p.Draw, p.Samples = "shapley", 5 })
	for i := 0; i < s.Count; i += 2 {
		for k := range units {
			if s.Has(i, k) == s.Has(i+1, k) {
				t.Errorf("shapley: subset %d isn't the complement of %d", i+1, i)
			}
		}
	}
	s = draw(func(p *SubsetParams) { p.Draw, p.Samples = "permutation", 3 })
	for i := range s.Count {
		order, k := i/(units-1), i%(units-1)
		for unit := range units {
			if k > 0 && s.Has(i-1, unit) && !s.Has(i, unit) {
				t.Errorf("permutation: subset %d loses unit %d", i, unit)
			}
			if mate := (order-1)*(units-1) + units - 2 - k; order%2 == 1 &&
				s.Has(i, unit) == s.Has(mate, unit) {
				t.Errorf("permutation: subset %d isn't the complement of %d", i, mate)
			}
		}
		if s.Size(i) != k+1 {
			t.Errorf("permutation: subset %d has %d units, want %d", i, s.Size(i), k+1)
		}
	}
	for count, want := range map[int]int{5: 200, 100: 200, 101: 202} {
		if got := (SubsetParams{Draw: "bernoulli", Repeats: 1}).rows(count); got != want {
			t.Errorf("%d subsets of %d units by default, want %d", got, count, want)
		}
	}
	s = draw(func(p *SubsetParams) { p.Draw, p.Substrate, p.Repeats = "bernoulli", "random", 3 })
	for i := range s.Count {
		for k := range units {
			if s.Has(i, k) != s.Has(i/3*3, k) {
				t.Fatalf("repeats: subset %d isn't that of %d", i, i/3*3)
			}
		}
	}
}

// TestSubsetFrequencies compares how often sizes and units are drawn with their probabilities, within five
// standard deviations.
func TestSubsetFrequencies(t *testing.T) {
	const units, n = 6, 40000
	within := func(what string, count int, p float64) {
		t.Helper()
		if d := math.Abs(float64(count) - n*p); d > 5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%s: %d of %d, want a share of %.4f", what, count, n, p)
		}
	}
	kernel := 0.0
	for k := 1; k < units; k++ {
		kernel += (units - 1) / float64(k*(units-k))
	}
	for name, tt := range map[string]struct {
		change func(*SubsetParams)
		size   func(k int) float64 // the probability of a size
	}{
		"fixed": {func(*SubsetParams) {}, func(k int) float64 { return map[int]float64{3: 1}[k] }},
		"bernoulli": {func(p *SubsetParams) { p.P = 0.5 },
			func(k int) float64 { return []float64{1, 6, 15, 20, 15, 6, 1}[k] / 64 }},
		"shapley": {func(p *SubsetParams) { p.Paired = false }, func(k int) float64 {
			if k == 0 || k == units {
				return 0
			}
			return (units - 1) / float64(k*(units-k)) / kernel
		}},
	} {
		p := subsetParams(func(p *SubsetParams) { p.Draw, p.Samples = name, n })
		tt.change(p)
		s := p.subsets(rand.New(rand.NewPCG(3, 4)), units)
		sizes, first, last, both := make([]int, units+1), 0, 0, 0
		for i := range s.Count {
			sizes[s.Size(i)]++
			a, b := s.Has(i, 0), s.Has(i, units-1)
			if a {
				first++
			}
			if b {
				last++
			}
			if a && b {
				both++
			}
		}
		pairs := 0.0
		for k, count := range sizes {
			within(fmt.Sprintf("%s: size %d", name, k), count, tt.size(k))
			pairs += tt.size(k) * float64(k*(k-1)) / (units * (units - 1))
		}
		within(name+": the first unit", first, 0.5)
		within(name+": the last unit", last, 0.5)
		within(name+": both", both, pairs)
	}
}

// TestSubsetIsTheItems checks that a result depends on neither batch nor order, and that repeats have
// noise of their own.
func TestSubsetIsTheItems(t *testing.T) {
	in := officialInput(t, "smallcnn")
	delete(in, "maps")
	reversed := map[string][]stages.Data{"model": in["model"]}
	for _, port := range []string{"images", "targets"} {
		var payloads [][]byte
		for i := range 2 {
			b, err := in[port][0].Load(1 - i)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, b)
		}
		reversed[port] = []stages.Data{stagetest.Items(nil, payloads...)}
	}
	p := subsetParams(func(p *SubsetParams) {
		p.Samples, p.Substrate, p.Repeats, p.Sizes = 9, "random", 2, []int{20, 300}
	})
	r, back := stagetest.Run(t, Subset, p, in), stagetest.Run(t, Subset, p, reversed)
	e, err := stagetest.Env(&Subset, in)
	if err != nil {
		t.Fatal(err)
	}
	e.Batch = 5
	if err := Subset.Run(t.Context(), p, e); err != nil {
		t.Fatal(err)
	}
	for _, o := range e.Outputs {
		if !bytes.Equal(o.Data, r.Payloads[o.Port][o.Call]) {
			t.Errorf("item %d has other %s in batches of 5", o.Call, o.Port)
		}
	}
	for port, payloads := range r.Payloads {
		for i := range payloads {
			if !bytes.Equal(payloads[i], back.Payloads[port][1-i]) {
				t.Errorf("item %d has other %s in another order", i, port)
			}
		}
	}
	for i := range 2 {
		v, columns := decode(t, r.Payloads["responses"][i]), 2+2*2*9
		for c := 1; c+1 < columns-1; c += 2 {
			if v[columns+c] == v[columns+c+1] {
				t.Errorf("item %d: the repeats of row %d have one response", i, c-1)
			}
		}
	}
}

// TestSegmentMean compares the substrate with means by hand.
func TestSegmentMean(t *testing.T) {
	m := linear(t, "unit", func(c, i int) float32 { return 1 })
	image := make([]float32, 3*linearN)
	for i := range image {
		image[i] = float32(i) / 128
	}
	in := linearInput(m, image, make([]uint32, linearN))
	delete(in, "maps")
	p := subsetParams(func(p *SubsetParams) {
		p.Draw, p.Substrate, p.Unit, p.Region = "single", "segment-mean", "region", 4
	})
	d := decode(t, stagetest.Run(t, Subset, p, in).Payloads["differences"][0])
	for k, got := range d {
		c, y, x := k/linearN, k%linearN/linearW, k%linearW
		mean := (float64(c*linearN) + 1.5*linearW + 1.5) / 128 // over columns 0 to 3 of four rows
		if x >= 4 {
			mean += 3. / 128
		}
		if want := float64(c*linearN+y*linearW+x)/128 - mean; math.Abs(got-want) > 1e-6 {
			t.Errorf("value %d differs by %v from its unit's mean, want %v", k, got, want)
		}
	}
	for name, p := range map[string]SubsetParams{
		"pixels":                {Substrate: "segment-mean", Unit: "pixel"},
		"segments without port": {Substrate: "zero", Unit: "segment"},
	} {
		if p.params().check(func(string) bool { return false }) == nil {
			t.Errorf("%s are accepted", name)
		}
	}
}

// TestSubsetLimits checks what is refused.
func TestSubsetLimits(t *testing.T) {
	for name, change := range map[string]func(*SubsetParams){
		"too large a size": func(p *SubsetParams) { p.Sizes = []int{10001} },
		"too many subsets": func(p *SubsetParams) { p.Draw, p.Unit, p.Samples = "permutation", "pixel", 9 },
	} {
		if subsetParams(change).fits(10000) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, change := range map[string]func(*SubsetParams){
		"an even kernel":       func(p *SubsetParams) { p.Kernel = 4 },
		"repeats of no noise":  func(p *SubsetParams) { p.Repeats = 2 },
		"subsets without size": func(p *SubsetParams) { p.Sizes, p.Shares = nil, nil },
	} {
		if subsetParams(change).Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestSubsetDefaultsFit checks that the defaults draw subsets of any number of units, those of Quantus where
// its sizes are set, and that a size which doesn't fit is refused with those that do.
func TestSubsetDefaultsFit(t *testing.T) {
	p := Subset.NewParams().(*SubsetParams)
	for units, size := range map[int]int{1: 1, 16: 1, 32 * 32: 4, 224 * 224: 225} {
		if err := p.fits(units); err != nil {
			t.Error(err)
		}
		if got := p.sizes(units); !slices.Equal(got, []int{size}) {
			t.Errorf("subsets of %v of %d units, want %d", got, units, size)
		}
	}
	p.Sizes = []int{224}
	if got := p.sizes(224 * 224); !slices.Equal(got, []int{224}) {
		t.Errorf("subsets of %v units with sizes: [224]", got)
	}
	const want = "a subset of 224 units can't be drawn of the 64 of an image: give sizes of at most 64, or " +
		"instead of sizes a share, such as shares: [0.2]"
	if err := p.fits(64); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestNoisySubset compares the logits of a linear net, to whose image noise is added, with the differences of
// every draw, and these with the noise's standard deviation.
func TestNoisySubset(t *testing.T) {
	const draws, deviation = 20, 0.2
	weight := func(c, i int) float32 { return float32((i+c)%5) - 2 }
	image := make([]float32, 3*linearN)
	for i := range image {
		image[i] = float32(i%7) / 8
	}
	in := linearInput(linear(t, "unit", weight), image, make([]uint32, linearN))
	delete(in, "maps")
	r := stagetest.Run(t, Subset, subsetParams(func(p *SubsetParams) {
		p.Sizes, p.Shares, p.Samples, p.Repeats, p.Substrate = nil, []float64{1}, 1, draws, "noisy"
	}), in)
	logits := decode(t, r.Payloads["responses"][0])[draws+2 : 2*(draws+2)]
	d := decode(t, r.Payloads["differences"][0])
	if len(d) != draws*len(image) {
		t.Fatalf("%d differences of %d draws", len(d), draws)
	}
	squares := 0.0
	for k := range draws {
		drop := 0.0
		for i, v := range d[k*len(image) : (k+1)*len(image)] {
			drop += float64(weight(i/linearN, i%linearN)) * v
			squares += v * v
		}
		if got := logits[0] - logits[1+k]; !(math.Abs(got-drop) <= 1e-4) {
			t.Errorf("draw %d lowers the logit by %v, want %v", k, got, drop)
		}
	}
	if s := math.Sqrt(squares / float64(len(d))); !(math.Abs(s-deviation) <= 0.02) {
		t.Errorf("the noise has a standard deviation of %v, want %v", s, deviation)
	}
}

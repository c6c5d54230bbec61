package attribute

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// tanhGame is a function of masks, of which testdata/partition_shap.py computes the values too.
func tanhGame(whole box) func(context.Context, []*coalition) ([]float64, error) {
	planes := whole.last
	n := whole.size()
	return func(_ context.Context, batch []*coalition) (out []float64, err error) {
		mask := make([]float32, n)
		for _, c := range batch {
			c.render(whole, mask)
			total := 0.0
			for k := range 5 {
				sum := 0.0
				for j := range n { // pixel by pixel, channels last
					m := mask[j%planes*(n/planes)+j/planes]
					sum += float64(math.Sin(float64(1+7*k+3*j)) / math.Sqrt(float64(n)) * float64(m))
				}
				total += math.Tanh(sum)
			}
			out = append(out, total)
		}
		return out, nil
	}
}

// solved returns the Owen values of a game, channels last, and the number of responses.
func solved(t *testing.T, whole box, evaluations, batch int,
	f func(context.Context, []*coalition) ([]float64, error)) (values []float64, asked int) {
	t.Helper()
	o := owen{whole: whole, evaluations: evaluations, atOnce: 5, batch: batch}
	o.respond = func(ctx context.Context, c []*coalition) ([]float64, error) {
		if len(c) > batch {
			t.Fatalf("%d responses at once, at most %d", len(c), batch)
		}
		asked += len(c)
		return f(ctx, c)
	}
	v, err := o.solve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values = make([]float64, len(v))
	for k := range v {
		plane := len(v) / whole.last
		values[k%plane*whole.last+k/plane] = v[k]
	}
	return values, asked
}

type officialPartition struct {
	Games []struct {
		Shape       [3]int
		Evaluations int
		Values      []float64
	}
	Nets []struct {
		Net, Substrate string
		Evaluations    int
		Values         []float32
	}
}

func readPartition(t *testing.T) (official officialPartition) {
	t.Helper()
	b, err := os.ReadFile("testdata/partition_shap.json")
	if err == nil {
		err = json.Unmarshal(b, &official)
	}
	if err != nil {
		t.Fatal(err)
	}
	return official
}

// TestOfficialPartitionGames holds Owen values against those of shap 0.51.0, where all nodes are opened and
// where the budget ends before, on functions without nodes of equal effect.
func TestOfficialPartitionGames(t *testing.T) {
	for _, g := range readPartition(t).Games {
		whole := box{bottom: g.Shape[0], right: g.Shape[1], last: g.Shape[2]}
		got, _ := solved(t, whole, g.Evaluations, 64, tanhGame(whole))
		if len(got) > 200 {
			got = every(got, 5)
		}
		largest := 0.0
		for _, v := range g.Values {
			largest = max(largest, math.Abs(v))
		}
		for k, want := range g.Values {
			if !(math.Abs(got[k]-want) <= 1e-13*max(1, largest)) {
				t.Errorf("%v, %d evaluations: value %d is %v, want %v", g.Shape, g.Evaluations, k, got[k],
					want)
				break
			}
		}
	}
}

func every[T any](v []T, step int) (out []T) {
	for k := 0; k < len(v); k += step {
		out = append(out, v[k])
	}
	return out
}

// sines returns an image [3,side,side] that the scripts in testdata make too.
func sines(side int) []float32 {
	pixels := make([]float32, 3*side*side)
	for k := range pixels {
		c, y, x := float64(k/side/side), float64(k/side%side)/float64(side), float64(k%side)/float64(side)
		pixels[k] = float32(.5 + .5*math.Sin(9*x+4*y*(1+c)+c)*math.Cos(5*y-3*c*x))
	}
	return pixels
}

// TestOfficialPartitionNets holds maps of nets against those of shap.
func TestOfficialPartitionNets(t *testing.T) {
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	const side = 64
	pixels := sines(side)
	for _, o := range readPartition(t).Nets {
		data := modeltest.Model(t, model.ONNXParams{
			Path: filepath.Join(root, "experiments", "quickstart", o.Net+".onnx"), Preset: "unit"})
		p := PartitionSHAP.NewParams().(*PartitionSHAPParams)
		p.Evaluations, p.Leaves, p.Substrate, p.Kernel = o.Evaluations, "values", "zero", 6
		if o.Substrate != "zero" {
			p.Substrate = "box-blur"
		}
		got := oneMap(t, PartitionSHAP, p, data, pixels, []int{3, side, side}, 2)
		near(t, fmt.Sprintf("%s, %s, %d evaluations", o.Net, o.Substrate, o.Evaluations), every(got, 7),
			o.Values, 1e-5)
	}
}

// TestOwenAdditive checks that each leaf of a sum has its term, however many nodes are opened beyond its own.
func TestOwenAdditive(t *testing.T) {
	whole := box{bottom: 4, right: 3, last: 1}
	terms := make([]float64, whole.size())
	r := rand.New(rand.NewPCG(1, 2))
	for k := range terms {
		terms[k] = r.NormFloat64()
	}
	got, _ := solved(t, whole, 1_000_000, 4, sumOf(whole, terms))
	for k, want := range terms {
		if !(math.Abs(got[k]-want) <= 1e-12) {
			t.Errorf("leaf %d: %v, want %v", k, got[k], want)
		}
	}
}

func sumOf(whole box, terms []float64) func(context.Context, []*coalition) ([]float64, error) {
	return func(_ context.Context, batch []*coalition) (out []float64, err error) {
		mask := make([]float32, whole.size())
		for _, c := range batch {
			c.render(whole, mask)
			sum := 0.0
			for k, m := range mask {
				sum += float64(terms[k] * float64(m))
			}
			out = append(out, sum)
		}
		return out, nil
	}
}

// TestOwenByHand computes the values of a product of two leaves, of three in a row: the tree halves them into
// the first two and the last.
func TestOwenByHand(t *testing.T) {
	whole := box{bottom: 1, right: 3, last: 1}
	product := func(a, b int) []float64 {
		f := func(_ context.Context, batch []*coalition) (out []float64, err error) {
			mask := make([]float32, 3)
			for _, c := range batch {
				c.render(whole, mask)
				out = append(out, float64(mask[a]*mask[b]))
			}
			return out, nil
		}
		v, _ := solved(t, whole, 100, 2, f)
		return v
	}
	for pair, want := range map[[2]int][]float64{
		{0, 1}: {.5, .5, 0}, {1, 2}: {0, .5, .5}, {0, 2}: {.5, 0, .5},
	} {
		if got := product(pair[0], pair[1]); !slices.Equal(got, want) {
			t.Errorf("product of %v: %v, want %v", pair, got, want)
		}
	}
}

// TestOwenAtOnce computes by hand the values of a sum of which three nodes are opened. The halves of the
// first four leaves have the effects −8.5 and 10, together 1.5, more than the last four. One by one, the
// second node is the first four leaves in one of their two contexts, and the third is the half of 10 in one
// of its four, in a quarter of all orders. Two at once are the first four leaves in both contexts.
func TestOwenAtOnce(t *testing.T) {
	whole := box{bottom: 1, right: 8, last: 1}
	terms := []float64{-4, -4.5, 9, 1, 0.25, 0.25, 0.25, 0.25}
	for atOnce, want := range map[int][]float64{
		1: {3./16 - 17./8, 3./16 - 17./8, 3./16 + 5./4 + 9./4, 3./16 + 5./4 + 1./4, 0.25, 0.25, 0.25, 0.25},
		2: {-4.25, -4.25, 5, 5, 0.25, 0.25, 0.25, 0.25},
	} {
		o := owen{whole: whole, evaluations: 8, atOnce: atOnce, batch: 1, respond: sumOf(whole, terms)}
		got, err := o.solve(t.Context())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d at once: %v, %v, want %v", atOnce, got, err, want)
		}
	}
}

// TestOwenBudget checks that values don't depend on the batch, sum to the difference of the ends, and need
// few more responses than the budget has.
func TestOwenBudget(t *testing.T) {
	whole := box{bottom: 13, right: 9, last: 3}
	f := tanhGame(whole)
	ends, _ := f(t.Context(), []*coalition{nil, {box: whole}})
	for _, budget := range []int{2, 3, 4, 50, 333} {
		want, asked := solved(t, whole, budget, 10, f)
		if asked > budget+10+1 {
			t.Errorf("%d evaluations took %d", budget, asked)
		}
		sum := 0.0
		for _, v := range want {
			sum += v
		}
		if !(math.Abs(sum-(ends[1]-ends[0])) <= 1e-12) {
			t.Errorf("%d evaluations: values sum to %v, want %v", budget, sum, ends[1]-ends[0])
		}
		for _, batch := range []int{1, 2, 3, 4, 7, 64} {
			if got, _ := solved(t, whole, budget, batch, f); !slices.Equal(got, want) {
				t.Errorf("%d evaluations: batches of %d give other values than of 10", budget, batch)
			}
		}
	}
}

// TestOwenConstant checks that a constant response has no values, which is all ties.
func TestOwenConstant(t *testing.T) {
	whole := box{bottom: 6, right: 6, last: 1}
	got, _ := solved(t, whole, 60, 10, sumOf(whole, make([]float64, 36)))
	for k, v := range got {
		if v != 0 {
			t.Errorf("leaf %d: %v", k, v)
		}
	}
}

// TestPartitionSHAPLeaves explains a linear net on an image of a single pixel, whose channels have a value
// each, w·x, or share one.
func TestPartitionSHAPLeaves(t *testing.T) {
	const pixel, n = 15, linearSide * linearSide
	x, want := make([]float32, 3*n), map[string][]float32{"pixels": make([]float32, n),
		"values": make([]float32, 3*n)}
	for c := range 3 {
		k := c*n + pixel
		x[k] = float32(c+1) / 4
		want["values"][k] = float32(linearWeight(k, 0)) * x[k]
		want["pixels"][pixel] += want["values"][k]
	}
	in := linearInput(t, x)
	for leaves, want := range want {
		p := *PartitionSHAP.NewParams().(*PartitionSHAPParams)
		p.Reduce, p.Leaves, p.Substrate, p.Evaluations = "none", leaves, "zero", 2000
		r := stagetest.Run(t, PartitionSHAP, &p, in)
		m, err := stages.DecodeTensor(r.Payloads["maps"][0])
		if err != nil || m.Len() != len(want) {
			t.Fatalf("leaves: %s give a map of shape %v: %v", leaves, m.Shape, err)
		}
		near(t, "leaves: "+leaves, m.Float32s(), want, 1e-6)
	}
}

// TestPartitionSHAPInvariant checks that maps don't depend on how they're computed, and their sum.
func TestPartitionSHAPInvariant(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	p := *PartitionSHAP.NewParams().(*PartitionSHAPParams)
	p.Evaluations = 61
	for _, p.Leaves = range []string{"pixels", "values"} {
		modeltest.InvariantStage(t, PartitionSHAP, &p, "maps", in)
	}
	p.Substrate = "images"
	in["substrates"] = in["images"]
	for i, m := range mapsOf(t, PartitionSHAP, &p, in) {
		for k, v := range m {
			if v != 0 {
				t.Fatalf("item %d: the image hidden by itself has the value %v at %d", i, v, k)
			}
		}
	}
}

// TestBoxBlur holds the blur against numbers of OpenCV 5.0.0: cv2.blur of 3×4 pixels, sides 2, 3 and 9.
func TestBoxBlur(t *testing.T) {
	x := []float32{1, 5, 2, 8, 0, 3, 9, 4, 7, 6, 2, 1}
	for side, want := range map[int][]float32{
		2: {2.25, 2.25, 4.75, 5.75, 2.25, 2.25, 4.75, 5.75, 4, 4, 5, 4},
		3: {2.555556, 3.555556, 5.222222, 6.222222, 4, 3.888889, 4.444445, 4.333333, 3.444444, 4.333333,
			4.555555, 5.444445},
		9: {4.481482, 4.395061, 4.08642, 4, 4.666667, 4.469136, 4.197531, 4, 4.407407, 4.333333, 4.185185,
			4.111111},
	} {
		got := make([]float32, 12)
		boxBlur(x, got, 3, 4, side)
		near(t, fmt.Sprintf("side %d", side), got, want, 1e-6)
	}
	one := []float32{3}
	boxBlur(one, one, 1, 1, 5)
	if one[0] != 3 {
		t.Errorf("a single pixel becomes %v", one[0])
	}
}

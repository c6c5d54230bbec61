package perturb

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// The images of the linear net.
const linearH, linearW, linearN = 4, 6, 24

// linear returns a net of two classes whose first logit is Σ w·x over the normalised image, and whose second
// is 0.
func linear(t *testing.T, preset string, w func(channel, pixel int) float32) stages.Data {
	t.Helper()
	weights := make([]float32, 2*3*linearN)
	for c := range 3 {
		for i := range linearN {
			weights[2*(c*linearN+i)] = w(c, i)
		}
	}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}},
		Graph: &onnxpb.GraphProto{Name: "g",
			Initializer: []*onnxpb.TensorProto{onnx.FloatTensor("w", weights, 3*linearN, 2)},
			Node: []*onnxpb.NodeProto{
				onnx.NewNode("", "Flatten", []string{"x"}, []string{"flat"}),
				onnx.NewNode("", "MatMul", []string{"flat", "w"}, []string{"logits"}),
			}},
	}}
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT,
		Shape: []int{onnx.Free, 3, linearH, linearW}, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT})
	return modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: preset})
}

// linearInput returns an image of the linear net and the ranks of its map.
func linearInput(m stages.Data, image []float32, ranks []uint32) map[string][]stages.Data {
	return map[string][]stages.Data{
		"model":   {m},
		"images":  {stagetest.Items(nil, stages.NewTensor(image, 3, linearH, linearW).Encode())},
		"maps":    {stagetest.Items(nil, stages.NewTensor(ranks, linearH, linearW).Encode())},
		"targets": {stagetest.Items(nil, stages.NewTensor([]int64{0}, 1).Encode())},
	}
}

// logits returns the logits of a stage's first curve.
func logits(t *testing.T, s stages.Stage, params any, in map[string][]stages.Data) []float64 {
	t.Helper()
	curve := decode(t, stagetest.Run(t, s, params, in).Payloads["curves"][0])
	return curve[len(curve)/3 : 2*len(curve)/3]
}

// TestReplacedUnits reads from the logits of a net whose weights are powers of two which pixels are left at
// every point, for every order and unit.
func TestReplacedUnits(t *testing.T) {
	m := linear(t, "unit", func(c, i int) float32 { return float32(int(1) << i * ((3 - c) / 3)) })
	image := slices.Repeat([]float32{1}, 3*linearN)
	segment := make([]uint32, linearN) // of unequal sizes, with gaps in the labels
	for i := range segment {
		segment[i] = []uint32{900, 7, 7, 30}[i%4]
	}
	units := map[string]metric.Units{"pixel": metric.Regions(linearH, linearW, 1),
		"region": metric.Regions(linearH, linearW, 4)}
	var err error
	units["segment"], err = metric.Segments(stages.NewTensor(segment, linearH, linearW).Encode(), linearH,
		linearW)
	if err != nil {
		t.Fatal(err)
	}
	if r, s := units["region"], units["segment"]; r.Count != 2 || s.Count != 3 || r.Of[3] != 0 ||
		r.Of[4] != 1 || r.Of[23] != 1 || s.Of[0] != 2 || s.Of[1] != 0 || s.Of[3] != 1 {
		t.Fatalf("regions %v, segments %v", r, s)
	}
	for unit, u := range units {
		place := make([]uint32, u.Count) // of a unit in the order
		for k := range place {
			place[k] = uint32((5*k + 1) % u.Count)
		}
		in := linearInput(m, image, metric.Spread(u, place))
		if unit == "segment" {
			in["segments"] = []stages.Data{stagetest.Items(nil,
				stages.NewTensor(segment, linearH, linearW).Encode())}
		}
		p := defaults("zero")
		p.Unit, p.Region, p.Steps = unit, 4, u.Count
		for name, tt := range map[string]struct {
			stage    stages.Stage
			params   any
			replaced func(place, k int) bool // whether the unit at a place is 0 at point k
		}{
			"insertion": {Insertion, &InsertionParams{p}, func(at, k int) bool { return at >= k }},
			"deletion":  {Deletion, &DeletionParams{p}, func(at, k int) bool { return at < k }},
			"morf":      {Ablation, &AblationParams{p, "morf"}, func(at, k int) bool { return at < k }},
			"lerf": {Ablation, &AblationParams{p, "lerf"},
				func(at, k int) bool { return at >= u.Count-k }},
		} {
			got := logits(t, tt.stage, tt.params, in)
			for k := range u.Count + 1 {
				want := 0
				for i := range linearN {
					if !tt.replaced(int(place[u.Of[i]]), k) {
						want += 1 << i
					}
				}
				if got[k] != float64(want) {
					t.Errorf("%s of %ss: at point %d the pixels %024b are left, want %024b", name, unit, k,
						int(got[k]), want)
				}
			}
		}
		// A random order removes whole units, one at a point, and doesn't depend on the map.
		random := &AblationParams{p, "random"}
		got := logits(t, Ablation, random, in)
		slices.Reverse(place)
		in["maps"] = []stages.Data{stagetest.Items(nil,
			stages.NewTensor(metric.Spread(u, place), linearH, linearW).Encode())}
		if other := logits(t, Ablation, random, in); !slices.Equal(got, other) {
			t.Errorf("random order of %ss: %v with one map, %v with another", unit, got, other)
		}
		gone := map[int32]bool{}
		for k := range got[1:] {
			fell := int(got[k]) - int(got[k+1])
			for i := range linearN {
				if fell>>i&1 == 1 {
					gone[u.Of[i]] = true
				}
			}
			if len(gone) != k+1 {
				t.Errorf("random order of %ss: %d units are gone at point %d", unit, len(gone), k+1)
			}
		}
		if got[0] != 1<<24-1 || got[u.Count] != 0 {
			t.Errorf("random order of %ss: from %v to %v", unit, got[0], got[u.Count])
		}
	}
}

// TestSubstrates compares curves of a linear net with sums over the image and the substrate.
func TestSubstrates(t *testing.T) {
	weight := func(c, i int) float32 { return float32(math.Sin(float64(1 + c + 3*i))) }
	m := linear(t, "half", weight)
	n := modeltest.Net(t, m)
	image, other, ranks := make([]float32, 3*linearN), make([]float32, 3*linearN), make([]uint32, linearN)
	for i := range image {
		image[i], other[i] = float32(i*7%19)/19, float32(i*5%13)/13
	}
	for i := range ranks {
		ranks[i] = uint32(i * 7 % linearN)
	}
	in := linearInput(m, image, ranks)
	in["substrates"] = []stages.Data{stagetest.Items(nil,
		stages.NewTensor(other, 3, linearH, linearW).Encode())}
	normalised := func(v float32, c int) float64 {
		return (float64(v) - n.Mean[c]) / n.Std[c]
	}
	channelMean := func(c int) (sum float64) {
		for i := range linearN {
			sum += normalised(image[c*linearN+i], c) / linearN
		}
		return sum
	}
	for substrate, value := range map[string]func(c, i int) float64{
		"zero":         func(int, int) float64 { return 0 },
		"black":        func(c, _ int) float64 { return normalised(0, c) },
		"mean":         func(int, int) float64 { return (n.Mean[0] + n.Mean[1] + n.Mean[2]) / 3 },
		"channel-mean": func(c, _ int) float64 { return channelMean(c) },
		"images":       func(c, i int) float64 { return normalised(other[c*linearN+i], c) },
	} {
		p := defaults(substrate)
		p.Shares = []float64{0.25, 0.5, 1}
		got := logits(t, Deletion, &DeletionParams{p}, in)
		for k, count := range []uint32{0, 6, 12, 24} {
			want := 0.0
			for c := range 3 {
				for i := range linearN {
					v := normalised(image[c*linearN+i], c)
					if ranks[i] < count {
						v = value(c, i)
					}
					want += float64(weight(c, i)) * v
				}
			}
			if !(math.Abs(got[k]-want) <= 1e-4) {
				t.Errorf("%s: %v with %d pixels replaced, want %v", substrate, got[k], count, want)
			}
		}
	}
}

// TestGoldenSubstrates compares the means of channels with those of the ROAD repository.
func TestGoldenSubstrates(t *testing.T) {
	a := read(t, "road", "imputation.npz")
	in := officialInput(t, "smallcnn")
	n := modeltest.Net(t, in["model"][0])
	e, err := stagetest.Env(&Ablation, in)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 5 {
		image, mask := a[fmt.Sprint("img", k)].Float32s(), a[fmt.Sprint("mask", k)].Float32s()
		for substrate, name := range map[string]string{"channel-mean": "chmean", "zero": "zero"} {
			got := make([]float32, len(image))
			if err := newSubstrate(defaults(substrate), n).fill(e, 0, image, got); err != nil {
				t.Fatal(err)
			}
			for i, want := range a[fmt.Sprint(name, k)].Float32s() {
				if mask[i%1024] == 1 {
					got[i] = image[i]
				}
				if !(math.Abs(float64(got[i]-want)) <= 1e-6) {
					t.Fatalf("%s %d: value %d is %v, want %v", name, k, i, got[i], want)
				}
			}
		}
	}
}

// TestSharedCurves checks that cells which run together have the bytes of each alone.
func TestSharedCurves(t *testing.T) {
	in := officialInput(t, "smallcnn")
	with := func(substrate string, change func(*Params)) Params {
		p := defaults(substrate)
		p.Steps = 7
		change(&p)
		return p
	}
	zero := with("zero", func(*Params) {})
	parts := []struct {
		stage  *stages.Stage
		params any
	}{
		{&Insertion, &InsertionParams{with("blur", func(*Params) {})}},
		{&Insertion, &InsertionParams{zero}},
		{&Deletion, &DeletionParams{zero}},
		{&Deletion, &DeletionParams{with("random", func(*Params) {})}},
		{&Ablation, &AblationParams{zero, "morf"}},
		{&Ablation, &AblationParams{zero, "lerf"}},
		{&Ablation, &AblationParams{zero, "random"}},
		{&Ablation, &AblationParams{with("random", func(*Params) {}), "lerf"}},
		{&Ablation, &AblationParams{with("blur", func(p *Params) { p.Sigma = 2 }), "morf"}},
		{&Region, &AblationParams{with("blur", func(p *Params) { p.Limit = 30 }), "lerf"}},
	}
	var shared []stages.Part
	for _, part := range parts {
		e, err := stagetest.Env(part.stage, in)
		if err != nil {
			t.Fatal(err)
		}
		shared = append(shared, stages.Part{Params: part.params, Env: e})
	}
	for _, part := range shared {
		part.Env.Slot = shared[0].Env.Slot
	}
	if err := curveRun.Run(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	for k, part := range parts {
		alone := stagetest.Run(t, *part.stage, part.params, in).Payloads["curves"]
		for i, o := range shared[k].Env.Outputs {
			if !bytes.Equal(o.Data, alone[i]) {
				t.Errorf("%s %+v: item %d has other bytes in a shared run", part.stage.Name, part.params, i)
			}
		}
		if len(alone) != len(shared[k].Env.Outputs) {
			t.Errorf("%s: %d curves in a shared run", part.stage.Name, len(shared[k].Env.Outputs))
		}
	}
}

func TestCheck(t *testing.T) {
	is := func(change func(*Params)) Params {
		p := defaults("zero")
		p.Steps = 5
		change(&p)
		return p
	}
	for _, tt := range []struct {
		name  string
		p     Params
		wired string
		good  bool
	}{
		{"as it is", is(func(*Params) {}), "", true},
		{"images", is(func(p *Params) { p.Substrate = "images" }), "substrates", true},
		{"images without a port", is(func(p *Params) { p.Substrate = "images" }), "", false},
		{"a port without images", is(func(*Params) {}), "substrates", false},
		{"segments", is(func(p *Params) { p.Unit = "segment" }), "segments", true},
		{"segments without a port", is(func(p *Params) { p.Unit = "segment" }), "", false},
		{"segments one by one", is(func(p *Params) { p.Unit, p.Steps = "segment", 0 }), "segments", false},
		{"some segments", is(func(p *Params) { p.Unit, p.Limit = "segment", 3 }), "segments", false},
		{"shares and a limit", is(func(p *Params) { p.Shares, p.Limit = []float64{0.5}, 3 }), "", false},
	} {
		err := tt.p.Validate()
		if err == nil {
			err = tt.p.check(func(port string) bool { return port == tt.wired })
		}
		if (err == nil) != tt.good {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}

// TestSegmentsOneByOne checks that a curve with at least as many steps as an image has segments removes them
// one by one, and that points which repeat others take no passes.
func TestSegmentsOneByOne(t *testing.T) {
	p := defaults("zero")
	p.Unit = "segment"
	for _, steps := range []int{10, 16, 23, 100} {
		p.Steps = steps
		points := p.points(10, 32)
		for k, n := range points[1:] {
			if n-points[k] > 1 {
				t.Errorf("%d steps: a point removes segments %d to %d of 10", steps, points[k], n)
			}
		}
		if len(points) != steps+1 || points[steps] != 10 {
			t.Errorf("%d steps: points %v", steps, points)
		}
		b := &blend{params: p}
		if first, last := b.sets([]*trace{{Params: p, blend: b}}, 10, 32); len(first)+len(last) != 11 {
			t.Errorf("%d steps of 10 segments take %d passes", steps, len(first)+len(last))
		}
	}
}

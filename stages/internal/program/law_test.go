package program_test

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

func net(t testing.TB, p model.ONNXParams) *program.Net {
	t.Helper()
	return modeltest.Net(t, modeltest.Model(t, p))
}

// wave writes image number k: uneven normalised values around 0.
func wave(k int, dst []float32) {
	for i := range dst {
		x := float64(i)
		dst[i] = float32(math.Sin(x*0.31+float64(k)) + math.Sin(x*0.0017*float64(k+1)) + math.Sin(x*0.013))
	}
}

// threaded is a CPU slot that keeps everything.
type threaded struct {
	threads int
	stages.Slot
}

func (s threaded) Device() stages.Device { return stages.Device{Class: "cpu", Threads: s.threads} }

// differentiate returns the answers to some images and the derivatives of each one's own class.
func differentiate(t *testing.T, n *program.Net, slot stages.Slot, q lower.Question, batch,
	images int) (answers, derivatives []float32) {
	t.Helper()
	g, err := n.Gradient(t.Context(), slot, q, batch)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	for from := 0; from < images; from += g.Batch {
		for i := range g.Batch {
			k := min(from+i, images-1)
			wave(k, g.Image(i))
			g.Explain(i, program.Target{Class: k % n.Classes, Minus: -1})
		}
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range min(g.Batch, images-from) {
			answers = append(answers, g.Row(i)...)
			derivatives = append(derivatives, g.Gradient(i)...)
		}
	}
	return answers, derivatives
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b,
		func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// layers returns some values from all over the net's graph, with a row for each image.
func layers(t *testing.T, n *program.Net, slot stages.Slot, batch, count int) []string {
	t.Helper()
	g, err := n.Graph(t.Context(), slot, batch)
	if err != nil {
		t.Fatal(err)
	}
	readers := map[string][]string{}
	for _, node := range g.Proto.Graph.Node {
		for _, v := range node.Input {
			readers[v] = append(readers[v], node.OpType)
		}
	}
	var all []string
	for _, node := range g.Proto.Graph.Node {
		v := node.Output[0]
		if s := g.Shape(v); len(s) < 2 || s[0] != batch || v == n.Output {
			continue
		}
		// The exception of canonical sessions, and BatchNormalization that is folded unless it is the layer.
		if node.OpType == "Conv" && slices.Equal(readers[v], []string{"BatchNormalization"}) ||
			(node.OpType == "Conv" || node.OpType == "BatchNormalization") &&
				slices.Equal(readers[v], []string{"Add"}) {
			continue
		}
		all = append(all, v)
	}
	var out []string
	for i := range count {
		if k := i * len(all) / count; len(out) == 0 || all[k] != out[len(out)-1] {
			out = append(out, all[k])
		}
	}
	return out
}

// TestOneForward checks that the forward pass of every program with a backward pass has the same bits,
// whatever its rules and layer: only then can programs share it.
func TestOneForward(t *testing.T) {
	for name, p := range stagetest.SampleOf(t, 3, modeltest.Nets(t, true)) {
		t.Run(name, func(t *testing.T) {
			n := net(t, p)
			slot := threaded{1, stagetest.NewSlot()}
			batch := n.Fit(2, 2)
			questions := []lower.Question{{Rules: relevance.Guided()}, {Rules: relevance.Deconvolution()},
				{Rules: relevance.Derivative(), Probability: true}}
			for _, v := range layers(t, n, slot, batch, 4) {
				questions = append(questions, lower.Question{Rules: relevance.Derivative(), Layer: v})
			}
			want, _ := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, batch, 2)
			for _, q := range questions {
				if got, _ := differentiate(t, n, slot, q, batch, 2); !sameBits(got, want) {
					t.Errorf("%+v: the answers have other bits than those of the plain gradient", q)
				}
			}
		})
	}
}

// TestDerivativesBits checks that an image's derivative has the same bits in batches of 1, 2, 4 and 8,
// whatever the other images, on one thread and on two.
func TestDerivativesBits(t *testing.T) {
	all := modeltest.Nets(t, true)
	for _, name := range []string{"attention", "fused", "grid", "lstm", "means", "tokens"} {
		all[name] = small(t, name)
	}
	for name, p := range stagetest.SampleOf(t, 4, all) {
		t.Run(name, func(t *testing.T) {
			n := net(t, p)
			images, runs := 5, []struct{ threads, batch int }{{1, 4}, {2, 2}, {3, 8}, {3, 1}}
			if n.Size() > 100000 {
				images, runs = 2, runs[3:]
			}
			check := func(q lower.Question) {
				slot := func(threads int) stages.Slot { return threaded{threads, stagetest.NewSlot()} }
				_, want := differentiate(t, n, slot(1), q, images, images)
				for _, r := range runs {
					if n.Batch > 0 && r.batch != n.Batch {
						continue
					}
					if _, got := differentiate(t, n, slot(r.threads), q, r.batch, images); !sameBits(got,
						want) {
						t.Errorf("%+v: batch %d on %d threads gives other bits than batch %d on one", q,
							r.batch, r.threads, images)
					}
				}
			}
			check(lower.Question{Rules: relevance.Derivative()})
			if n.Size() < 10000 { // scaled image by image
				check(lower.Question{Rules: relevance.AbsLRP{Variant: relevance.AbsLRPOfficial,
					MaxPool: relevance.MaxPoolAuto, Ablation: relevance.AblationNone}.Policy()})
			}
			if n.Size() < 100000 {
				check(lower.Question{Rules: relevance.Derivative(), Probability: true})
			}
		})
	}
}

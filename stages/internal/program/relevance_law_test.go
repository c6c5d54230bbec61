package program_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// lrp returns a composite of one rule.
func lrp(rule relevance.LayerRule, epsilon float32, bias bool) relevance.LRP {
	return relevance.LRP{
		Conv: rule, Dense: rule, Stabiliser: epsilon, Bias: bias,
		Norm: relevance.NormFolded, Gates: relevance.GatesConstant,
	}
}

// mixed returns composites that together have every rule.
func mixed() []relevance.Policy {
	gamma := lrp(relevance.Gamma(0.25, 1e-6), 1e-6, true)
	gamma.First, gamma.Dense = relevance.ImageBox(1e-6), relevance.Epsilon(1e-6)
	halves := lrp(relevance.AlphaBeta(2, 1, 1e-6), 1e-6, false)
	halves.First, halves.Gates = relevance.Flat(1e-6), relevance.GatesHalved
	slopes := relevance.AttnLRP().PolicyWith(relevance.LayerRules{Conv: relevance.Gamma(0.25, 1e-6),
		Dense: relevance.Gamma(0.05, 1e-6)})
	return []relevance.Policy{gamma.Policy(), halves.Policy(), relevance.RAP().Policy(),
		relevance.Balanced().Policy(), slopes}
}

// TestRelevanceBits holds that relevance of an image has the same bits in batches of any size, whatever else
// is in the batch, on one thread and on two; and, but where branches meet, that the answer has the bits that
// it has with the plain gradient.
func TestRelevanceBits(t *testing.T) {
	for name, p := range stagetest.SampleOf(t, 3, modeltest.Nets(t, false)) {
		t.Run(name, func(t *testing.T) {
			n := net(t, p)
			const images = 3
			for _, rules := range mixed() {
				q := lower.Question{Rules: rules, Start: lower.StartOnes}
				answers, want := differentiate(t, n, threaded{1, stagetest.NewSlot()}, q, images, images)
				for _, v := range want {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						t.Fatalf("%s: relevance %v", rules.Name, v)
					}
				}
				if n.Batch == 0 {
					if _, got := differentiate(t, n, threaded{2, stagetest.NewSlot()}, q, 1,
						images); !sameBits(got, want) {
						t.Errorf("%s: a batch of one on two threads gives other bits than one of %d on one",
							rules.Name, images)
					}
				}
				if rules.Apart || branches(t, n) {
					continue
				}
				plain := lower.Question{Rules: relevance.Derivative()}
				if got, _ := differentiate(t, n, threaded{1, stagetest.NewSlot()}, plain, images,
					images); !sameBits(got, answers) {
					t.Errorf("%s: the answers have other bits than those with the plain gradient",
						rules.Name)
				}
			}
		})
	}
}

// TestSigmoidStart holds that what starts at the logits of a net that ends in a Sigmoid starts with the slope
// of its probability there: the plain gradient is the same from there as from the answer.
func TestSigmoidStart(t *testing.T) {
	p := modeltest.Nets(t, false)["smallcnn"]
	m, err := onnx.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	f := m.Fragment()
	f.OpTo("each", "Sigmoid", []string{"logits"})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "each", Elem: onnxpb.TensorProto_FLOAT})
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p.Path = filepath.Join(t.TempDir(), "net.onnx")
	if err := os.WriteFile(p.Path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	n := net(t, p)
	q := lower.Question{Rules: relevance.Derivative(), Probability: true}
	_, want := differentiate(t, n, threaded{1, stagetest.NewSlot()}, q, 2, 2)
	q.Start = lower.StartOnes
	_, got := differentiate(t, n, threaded{1, stagetest.NewSlot()}, q, 2, 2)
	largest, apart := 0.0, 0.0
	for i := range want {
		largest = math.Max(largest, math.Abs(float64(want[i])))
		apart = math.Max(apart, math.Abs(float64(got[i])-float64(want[i])))
	}
	if !(apart <= 1e-5*largest) || largest == 0 {
		t.Errorf("the gradients are apart by %g of %g", apart, largest)
	}
}

// branches reports whether a net adds what a Conv makes to something else. Shares of that sum look at what
// the Conv makes, which then isn't one node with the sum.
func branches(t *testing.T, n *program.Net) bool {
	t.Helper()
	g, err := n.Graph(t.Context(), threaded{1, stagetest.NewSlot()}, n.Fit(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range g.Proto.Graph.Node {
		for _, v := range node.Input {
			from := g.Producer(v)
			if node.OpType == "Add" && from != nil &&
				(from.OpType == "Conv" || from.OpType == "BatchNormalization") {
				return true
			}
		}
	}
	return false
}

// unbiased returns a net without biases: all its Conv, Gemm and BatchNormalization nodes add zeros.
func unbiased(t *testing.T, name string) *program.Net {
	t.Helper()
	b, err := modeltest.Model(t, modeltest.Nets(t, true)[name]).Load(0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelfile.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	o, err := onnx.Parse(m.ONNX)
	if err != nil {
		t.Fatal(err)
	}
	zero := map[string]bool{}
	for _, node := range o.Proto.Graph.Node {
		n := onnx.Node{NodeProto: node}
		switch n.OpType {
		case "Conv", "Gemm":
			zero[n.In(2)] = true
		case "BatchNormalization":
			zero[n.In(2)], zero[n.In(3)] = true, true
		}
	}
	for i, w := range o.Proto.Graph.Initializer {
		if zero[w.Name] {
			shape := make([]int, len(w.Dims))
			for k, d := range w.Dims {
				shape[k] = int(d)
			}
			o.Proto.Graph.Initializer[i] = onnx.FloatTensor(w.Name, make([]float32, shape[0]), shape...)
		}
	}
	if m.ONNX, err = o.Encode(); err != nil {
		t.Fatal(err)
	}
	n, err := modeltest.NetOf(m)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLRP0 holds two laws of nets of Relus without biases: LRP-0 is the gradient times the input, and its sum
// is the logit it starts with.
func TestLRP0(t *testing.T) {
	for _, name := range []string{
		"smallcnn", "gapcnn", "vgg", "resnet", "timm_resnet_basic_bn", "timm_resnet_basic2_bn",
		"cifar10_mlperftiny_resnet8",
		"cifar10_resnet20", "cifar10_vnncomp_resnet_2b", "mnist_vnncomp_convnet_maxpool",
		"imagenet_squeezenet1.1_caffe_227",
	} {
		n := unbiased(t, name)
		slot := threaded{2, stagetest.NewSlot()}
		gradient, err := n.Gradient(t.Context(), slot, lower.Question{Rules: relevance.Derivative()}, 1)
		if err != nil {
			t.Fatal(err)
		}
		zero, err := n.Gradient(t.Context(), slot, lower.Question{Rules: lrp(relevance.Epsilon(0), 0,
			true).Policy(), Start: lower.StartLogits}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			target := program.Target{Class: k % n.Classes, Minus: -1}
			for _, g := range []program.Gradient{gradient, zero} {
				wave(k, g.Image(0))
				g.Explain(0, target)
				if err := g.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var off, all, sum, size float64
			for i, v := range zero.Gradient(0) {
				want := float64(gradient.Gradient(0)[i]) * float64(gradient.Image(0)[i])
				off += (float64(v) - want) * (float64(v) - want)
				all += want * want
				sum += float64(v)
				size += math.Abs(float64(v))
			}
			if e := math.Sqrt(off / all); !(e <= 1e-4) {
				t.Errorf("%s, image %d: relative error %.2g from input times gradient", name, k, e)
			} else {
				t.Logf("%s, image %d: relative error %.2g", name, k, e)
			}
			if e := math.Abs(sum-float64(zero.Row(0)[target.Class])) / size; !(e <= 1e-4) {
				t.Errorf("%s, image %d: relevance sums to %v, the logit is %v", name, k, sum,
					zero.Row(0)[target.Class])
			}
		}
	}
}

// TestConservation holds that at every node relevance is kept: what leaves it, with what biases and other
// constants take, is what arrives, relative to the sum of magnitudes; and that what starts is what arrives in
// the end with all that was taken.
func TestConservation(t *testing.T) {
	for name, p := range stagetest.SampleOf(t, 3, modeltest.Nets(t, true)) {
		t.Run(name, func(t *testing.T) {
			n := net(t, p)
			for _, bias := range []bool{true, false} {
				// Where biases take nothing, ε keeps relevance of deep nets within no bounds.
				if !bias && n.Size() > 100000 {
					continue
				}
				q := lower.Question{Rules: lrp(relevance.Epsilon(1e-9), 1e-9, bias).Policy(),
					Start: lower.StartLogits}
				a, err := n.Audit(t.Context(), threaded{2, stagetest.NewSlot()}, q)
				if err != nil {
					t.Fatal(err)
				}
				wave(1, a.Image(0))
				a.Explain(0, program.Target{Class: 1 % n.Classes, Minus: -1})
				if err := a.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, at := range a.Accounts() {
					// The relevance of a constant joined with the image's values is lost.
					if at.Op == "Concat" || at.Op == "Softmax" {
						continue
					}
					size := math.Max(at.Size, math.Abs(at.Arrives)+math.Abs(at.Constants))
					if lost := at.Arrives - at.Leaves - at.Constants; !(math.Abs(lost) <= 1e-4*size) {
						t.Errorf("bias %t, %s %q: %g arrives, %g leaves, constants take %g", bias, at.Op,
							at.Node, at.Arrives, at.Leaves, at.Constants)
					}
				}
			}
		})
	}
}

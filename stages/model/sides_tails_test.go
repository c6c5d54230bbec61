package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// A sided writes what follows the features of a net, for one output or for both classes.
type sided struct {
	*rand.Rand
	m     *onnx.Model
	f     *onnx.Fragment
	both  bool
	steps string
}

// rows returns weights of one class, or those of both: the first negated.
func (s *sided) rows(n int, transposed bool) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(s.NormFloat64())
	}
	if !s.both {
		return w
	}
	out := make([]float32, 2*n)
	for i, x := range w {
		if transposed {
			out[2*i], out[2*i+1] = -x, x
		} else {
			out[i], out[n+i] = -x, x
		}
	}
	return out
}

func (s *sided) classes() int64 {
	if s.both {
		return 2
	}
	return 1
}

// layer writes a linear layer on the features, the value m [N,4,1,1] or its maps r, and returns logits
// [N,classes].
func (s *sided) layer() string {
	k := s.IntN(6)
	s.steps += fmt.Sprint(" layer ", k)
	c := s.classes()
	switch k {
	case 0:
		return s.f.Op("Gemm", []string{"f", s.f.Floats("w", s.rows(4, false), c, 4),
			s.f.Floats("b", s.rows(1, false), c)}, onnx.Attr{Name: "transB", Value: 1})
	case 1:
		return s.f.Op("Gemm", []string{"f", s.f.Floats("w", s.rows(4, true), 4, c),
			s.f.Floats("b", s.rows(1, false), c)}, onnx.Attr{Name: "alpha", Value: float32(0.5)})
	case 2:
		x := s.f.Op("MatMul", []string{"f", s.f.Floats("w", s.rows(4, true), 4, c)})
		return s.f.Op("Add", []string{x, s.f.Floats("b", s.rows(1, false), c)})
	case 3:
		if s.both {
			return s.f.Op("MatMul", []string{"f", s.f.Floats("w", s.rows(4, true), 4, 2)})
		}
		x := s.f.Op("MatMul", []string{"f", s.f.Floats("w", s.rows(4, true), 4)})
		return s.f.Op("Unsqueeze", []string{x, s.f.Ints("axes", []int64{1}, 1)})
	}
	x := s.f.Op("Conv", []string{"r", s.f.Floats("w", s.rows(4, false), c, 4, 1, 1),
		s.f.Floats("b", s.rows(1, false), c)})
	if k == 4 {
		return s.f.Op("Flatten", []string{s.f.Op("GlobalAveragePool", []string{x})})
	}
	return s.f.Op("ReduceMean", []string{x}, onnx.Attr{Name: "axes", Value: []int64{2, 3}},
		onnx.Attr{Name: "keepdims", Value: 0})
}

// logits writes layers and what is done to their sum.
func (s *sided) logits() string {
	z := s.layer()
	for range s.IntN(4) {
		k := s.IntN(7)
		s.steps += fmt.Sprint(" step ", k)
		switch k {
		case 0:
			z = s.f.Op("Add", []string{z, s.layer()})
		case 1:
			z = s.f.Op("Sub", []string{z, s.layer()})
		case 2:
			z = s.f.Op("Add", []string{s.f.Floats("c", s.rows(1, false), s.classes()), z})
		case 3:
			z = s.f.Op("Sub", []string{s.f.Floats("c", s.rows(1, false), s.classes()), z})
		case 4:
			z = s.f.Op("Mul", []string{s.f.Floats("c", []float32{1.5}), z})
		case 5:
			z = s.f.Op("Div", []string{z, s.f.Floats("c", []float32{0.7}, 1)})
		case 6:
			z = s.f.Op("Neg", []string{z})
		}
	}
	return z
}

// sidedNet returns a net with a tail that the seed tells.
func sidedNet(t *testing.T, seed uint64, both bool) (stages.Data, string) {
	t.Helper()
	m := tiny{channels: 3, filters: 4, classes: 1, height: 6, width: 9, gain: 1}.model(onnx.Free)
	s := &sided{Rand: rand.New(rand.NewPCG(seed, 27)), m: m, f: m.Fragment(), both: both}
	m.Proto.Graph.Node = m.Proto.Graph.Node[:4] // up to the features
	x := s.logits()
	kind := "auto"
	switch k := s.IntN(5); {
	case k == 0:
		s.steps += " logit"
		kind = "sigmoid-logits"
	case k == 1:
		s.steps += " probability"
		x, kind = s.f.Op("Sigmoid", []string{x}), "probabilities"
	case k == 2 && !both:
		s.steps += " Sigmoid, Squeeze"
		x = s.f.Op("Squeeze", []string{s.f.Op("Sigmoid", []string{x}), s.f.Ints("axes", []int64{1}, 1)})
	case k == 3 && !both:
		s.steps += " Sigmoid of places"
		x = s.f.Op("Sigmoid", []string{s.f.Op("Reshape", []string{x, s.f.Ints("shape", []int64{-1, 1, 1,
			1}, 4)})})
	default:
		s.steps += " Sigmoid"
		x = s.f.Op("Sigmoid", []string{x})
	}
	m.After(s.f)
	m.SetOutputs(onnx.Value{Name: x, Elem: onnxpb.TensorProto_FLOAT})
	return modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "half", Kind: kind}),
		s.steps
}

// TestTwoSidesOfTails holds the same of generated tails of nets: linear layers of every form, sums and
// differences of them, scales, offsets and negations, with and without a Sigmoid. Rules of relevance that
// treat positive and negative weights apart tell what became of the weights.
func TestTwoSidesOfTails(t *testing.T) {
	modeltest.Runtime(t)
	image := make([]byte, 3*6*9)
	for i := range image {
		image[i] = byte(i*i*7 + i)
	}
	images := stagetest.Items(nil, stages.NewTensor(image, 3, 6, 9).Encode())
	methods := []string{"lrp-alpha-beta", "lrp-gamma", "abslrp", "clrp", "deeplift", "saliency", "grad-cam"}
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	compared := 0
	for seed := range seeds {
		one, steps := sidedNet(t, uint64(seed), false)
		two, _ := sidedNet(t, uint64(seed), true)
		method := "attribute/" + methods[seed%len(methods)]
		for class := range int64(2) {
			numbers := func(net stages.Data) (all [][]float64) {
				a := answerer{t, stagetest.NewSlot(), map[string]stages.Data{"model": net, "images": images,
					"targets": stagetest.Items(nil, stages.NewTensor([]int64{class}, 1).Encode())}}
				defer stagetest.Release(a.slot)
				r, err := a.run(method, nil, nil)
				if err != nil {
					if !strings.Contains(err.Error(), "depend") {
						t.Errorf("seed %d,%s: %v", seed, steps, err)
					}
					return nil
				}
				for _, b := range r.Payloads["maps"] {
					d, err := stages.DecodeTensor(b)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, doubles(d.Float32s()))
				}
				return append(all, a.probability(class))
			}
			got, want := numbers(one), numbers(two)
			if want == nil {
				continue // ONNX Runtime fused a sum of layers to a Gemm with a bias that depends on the image
			}
			compared++
			if d := differ(got, want, 1); !(d <= 2e-6) || math.IsNaN(d) {
				t.Errorf("seed %d,%s: %s of class %d is apart by %.2g", seed, steps, method, class, d)
			}
		}
	}
	if compared < 3*seeds/2 {
		t.Errorf("%d maps were compared of %d nets", compared, seeds)
	}
}

// probability returns what model/predict says of a class.
func (a answerer) probability(class int64) []float64 {
	a.t.Helper()
	r := a.must("model/predict", func(p any) { p.(*model.PredictParams).Target = fmt.Sprint(class) }, nil)
	p, err := stages.ScalarOf(r.Payloads["probability"][0])
	if err != nil {
		a.t.Fatal(err)
	}
	return []float64{p}
}

package relevance

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// alone are the operators with no example whose batch can grow, and why.
var alone = map[string]string{}

// TestBatch holds that what arrives at an image has the same bits in batches of 1,
// 2, 4 and 8, wherever in the batch it is, on one thread and on two.
func TestBatch(t *testing.T) {
	for _, op := range All() {
		if op.Kind == Opaque {
			continue
		}
		examples := 0
		candidates := append(slices.Clone(op.Examples), large(op.Type)...)
		if ragged(op.Type) {
			candidates = large(op.Type)
		}
		for _, ex := range candidates {
			if batchable(t, op, ex) {
				examples++
				t.Run(op.Type+"/"+ex.Name, func(t *testing.T) { sameBits(t, op, ex) })
			}
		}
		if _, listed := alone[op.Type]; (examples == 0) != listed {
			t.Errorf("%s: %d examples with a batch that can grow", op.Type, examples)
		}
	}
}

// ragged lists operators that ONNX Runtime itself computes with other last bits for
// the elements at a tensor's end that don't fill a vector of its processor. Their
// images are tested at sizes that do.
func ragged(op string) bool {
	return slices.Contains([]string{"Celu", "Cos", "Elu", "LRN", "Selu", "Sin"}, op)
}

// large returns examples of the sizes that nets have, where other kernels run.
func large(op string) []Example {
	switch op {
	case "Celu", "Cos", "Elu", "Selu", "Sin":
		return []Example{{Name: "whole vectors", Inputs: [][]int{{2, 3, 16}}}}
	case "LRN":
		return []Example{{Name: "whole vectors", Inputs: [][]int{{2, 7, 4, 4}}, Attrs: []onnx.Attr{{Name: "size", Value: 5}}}}
	case "Softmax":
		return []Example{{Name: "197 tokens", Inputs: [][]int{{2, 3, 197, 197}}}}
	case "LayerNormalization":
		return []Example{
			{Name: "197 tokens", Inputs: [][]int{{2, 197, 192}, {192}, {192}}},
			{Name: "one token", Inputs: [][]int{{2, 1, 193}, {193}, {193}}},
		}
	case "Conv":
		strides := []onnx.Attr{{Name: "strides", Value: []int64{2, 2}}}
		return []Example{
			{Name: "large", Inputs: [][]int{{2, 32, 15, 15}, {48, 32, 3, 3}}},
			{Name: "a stride", Inputs: [][]int{{2, 32, 15, 15}, {48, 32, 3, 3}}, Attrs: strides},
			{Name: "a stride and many filters", Inputs: [][]int{{2, 32, 15, 15}, {160, 32, 3, 3}}, Attrs: strides},
			{Name: "a shortcut", Inputs: [][]int{{2, 65, 15, 15}, {160, 65, 1, 1}}, Attrs: strides},
		}
	case "Gemm":
		return []Example{{Name: "large", Inputs: [][]int{{2, 513}, {513, 301}, {301}}}}
	case "MatMul":
		return []Example{
			{Name: "197 tokens", Inputs: [][]int{{2, 197, 192}, {192, 193}}, Flow: []int{0}},
			{Name: "one token", Inputs: [][]int{{2, 1, 192}, {192, 193}}, Flow: []int{0}},
			{Name: "a head", Inputs: [][]int{{2, 193}, {193, 1001}}, Flow: []int{0}},
			{Name: "attention", Inputs: [][]int{{2, 3, 197, 64}, {2, 3, 64, 197}}},
		}
	case "Expand":
		return []Example{{Name: "a batch", Inputs: [][]int{{2, 197, 1}, nil}, Consts: map[int]any{1: []int64{1, 1, 193}}}}
	case "Add":
		return []Example{{Name: "sums", Inputs: [][]int{{2, 5, 49}, {2, 5, 1}}}, {Name: "longer sums", Inputs: [][]int{{2, 3, 197}, {2, 1, 1}}}}
	}
	return nil
}

// batched returns ex with a batch of n.
func batched(op *Op, ex Example, n int) Example {
	ex.Inputs = slices.Clone(ex.Inputs)
	for i, s := range ex.Inputs {
		if grows(op, ex, i) {
			ex.Inputs[i] = append([]int{n}, s[1:]...)
		}
	}
	return ex
}

// grows reports whether input i of ex has a batch.
func grows(op *Op, ex Example, i int) bool {
	s := ex.Inputs[i]
	flows := ex.Flow == nil && op.Role(i) == Data || slices.Contains(ex.Flow, i)
	return flows && len(s) > 1 && (s[0] == 2 || s[0] == 8)
}

// batchable reports whether a batch of ex can grow: all that flows has one, as all
// that depends on an image does, and so has what comes out.
func batchable(t *testing.T, op *Op, ex Example) bool {
	for i := range ex.Inputs {
		flows := ex.Flow == nil && op.Role(i) == Data || slices.Contains(ex.Flow, i)
		if ex.Inputs[i] != nil && flows && !grows(op, ex, i) {
			return false
		}
	}
	for n := 1; n <= 8; n *= 8 {
		b, err := prepare(t, op, batched(op, ex, n), nil, 1)
		if err != nil {
			return false
		}
		b.close()
		for _, s := range b.shapes {
			if len(s) == 0 || s[0] != n {
				return false
			}
		}
	}
	return true
}

func sameBits(t *testing.T, op *Op, ex Example) {
	const most = 8
	r := rand.New(rand.NewPCG(3, 4))
	sample := func(i, n int) []float32 {
		v := ex.draw(i, n)
		if ex.Draw == nil {
			for k := range v {
				v[k] = float32(r.NormFloat64())
			}
		}
		return v
	}
	whole := batched(op, ex, most)
	var x, u, want [][]float32
	for _, threads := range []int{1, 2} {
		for _, n := range []int{8, 4, 2, 1} {
			if threads > 1 && n < most {
				continue
			}
			b, err := prepare(t, op, batched(op, ex, n), nil, threads)
			if err != nil {
				t.Fatal(err)
			}
			if x == nil {
				for k, i := range b.flows {
					x = append(x, sample(i, size(b.in[k])))
				}
				for _, s := range b.shapes {
					u = append(u, sample(99, size(s)))
				}
				_, want = b.run(t, x, u)
			}
			for first := 0; first < most; first += n {
				part := func(v []float32) []float32 { return v[first*len(v)/most : (first+n)*len(v)/most] }
				var px, pu [][]float32
				for k, i := range b.flows {
					px = append(px, x[k])
					if grows(op, whole, i) {
						px[k] = part(x[k])
					}
				}
				for k := range u {
					pu = append(pu, part(u[k]))
				}
				_, got := b.run(t, px, pu)
				for k, i := range b.flows {
					if !grows(op, whole, i) || got[k] == nil {
						continue
					}
					g, w := stages.NewTensor(got[k], len(got[k])).Raw, stages.NewTensor(part(want[k]), len(got[k])).Raw
					if !bytes.Equal(g, w) {
						different := 0
						for j := range got[k] {
							if got[k][j] != part(want[k])[j] {
								different++
							}
						}
						t.Errorf("input %d, image %d, batch %d, %d threads: %d of %d numbers have other bits than in a batch of 8", i, first, n, threads, different, len(got[k]))
					}
				}
			}
			b.close()
		}
	}
}

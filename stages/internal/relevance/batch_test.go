package relevance

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// TestBatch checks that the relevance of an image is bit-identical in batches of 1, 2, 4 and 8, at all
// positions, and with two threads.
func TestBatch(t *testing.T) {
	for _, op := range All() {
		if op.Kind == Opaque {
			continue
		}
		tested := 0
		for _, ex := range large(op.Type) {
			if sameBits(t, op, ex, []int{1, 2}) {
				tested++
			}
		}
		for _, ex := range op.Examples {
			if !ragged(op.Type) && sameBits(t, op, ex, []int{1}) {
				tested++
			}
		}
		if tested == 0 && !named(op.Type) {
			t.Errorf("%s has no example whose batch can grow", op.Type)
		}
	}
}

// named reports operators whose indices address images, so that the batch can't be resized without them.
func named(op string) bool {
	return slices.Contains([]string{"GatherElements", "GatherND", "ScatterElements", "ScatterND"}, op)
}

// ragged reports operators for which ONNX Runtime gives other last bits to the elements at a tensor's end
// that don't fill a SIMD vector. They are tested on images of sizes that do.
func ragged(op string) bool {
	return slices.Contains([]string{"Celu", "Cos", "Elu", "LRN", "Selu", "Sin"}, op)
}

// large returns examples of realistic sizes, for which other kernels are used.
func large(op string) []Example {
	switch op {
	case "Celu", "Cos", "Elu", "Selu", "Sin":
		return []Example{{Name: "whole vectors", Inputs: [][]int{{2, 3, 16}}}}
	case "LRN":
		return []Example{{Name: "whole vectors", Inputs: [][]int{{2, 7, 4, 4}},
			Attrs: []onnx.Attr{{Name: "size", Value: 5}}}}
	case "Softmax":
		return []Example{{Name: "197 tokens", Inputs: [][]int{{2, 1, 197, 197}}}}
	case "LayerNormalization":
		return []Example{
			{Name: "49 tokens", Inputs: [][]int{{2, 49, 192}, {192}, {192}}},
			{Name: "one token", Inputs: [][]int{{2, 1, 193}, {193}, {193}}},
		}
	case "Conv":
		strides := []onnx.Attr{{Name: "strides", Value: []int64{2, 2}}}
		return []Example{
			{Name: "large", Inputs: [][]int{{2, 32, 15, 15}, {48, 32, 3, 3}}},
			{Name: "a stride", Inputs: [][]int{{2, 32, 15, 15}, {48, 32, 3, 3}}, Attrs: strides},
			{Name: "a stride and many filters", Inputs: [][]int{{2, 32, 15, 15}, {160, 32, 3, 3}},
				Attrs: strides},
			{Name: "a shortcut", Inputs: [][]int{{2, 65, 15, 15}, {160, 65, 1, 1}}, Attrs: strides},
		}
	case "Gemm":
		return []Example{{Name: "large", Inputs: [][]int{{2, 513}, {513, 301}, {301}}}}
	case "MatMul":
		return []Example{
			{Name: "197 tokens", Inputs: [][]int{{2, 197, 96}, {96, 97}}, Flow: []int{0}},
			{Name: "one token", Inputs: [][]int{{2, 1, 192}, {192, 193}}, Flow: []int{0}},
			{Name: "a head", Inputs: [][]int{{2, 193}, {193, 301}}, Flow: []int{0}},
			{Name: "attention", Inputs: [][]int{{2, 1, 197, 64}, {2, 1, 64, 197}}},
		}
	case "Expand":
		return []Example{{Name: "a batch", Inputs: [][]int{{2, 197, 1}, nil},
			Consts: map[int]any{1: []int64{1, 1, 193}}}}
	case "Add":
		return []Example{{Name: "sums", Inputs: [][]int{{2, 5, 49}, {2, 5, 1}}},
			{Name: "longer sums", Inputs: [][]int{{2, 3, 197}, {2, 1, 1}}}}
	}
	return nil
}

const most = 8 // images in the largest batch

// batched returns ex with a batch of n, or false if ex has no batch: then not all flowing inputs have one.
func batched(op *Op, ex Example, n int) (Example, bool) {
	ex.Inputs = slices.Clone(ex.Inputs)
	for i, s := range ex.Inputs {
		if s == nil || !(ex.Flow == nil && op.Role(i) == Data || slices.Contains(ex.Flow, i)) {
			continue
		}
		if len(s) < 2 || s[0] != 2 {
			return ex, false
		}
		ex.Inputs[i] = append([]int{n}, s[1:]...)
	}
	return ex, true
}

// sameBits compares batches of ex, and returns false if the outputs have no batch.
func sameBits(t *testing.T, op *Op, ex Example, threads []int) bool {
	t.Helper()
	var benches []*bench // the first one has the most images
	defer func() {
		for _, b := range benches {
			b.close()
		}
	}()
	for _, threads := range threads {
		for n := most; n >= 1; n /= 2 {
			grown, ok := batched(op, ex, n)
			if !ok {
				return false
			}
			b, err := prepare(t, op, grown, Policy{}, threads)
			if err != nil { // a constant contains the batch size
				return false
			}
			benches = append(benches, b)
			if slices.ContainsFunc(b.shapes, func(s []int) bool { return len(s) == 0 || s[0] != n }) {
				return false
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(i, n int) []float32 {
		v := ex.draw(i, n)
		if ex.Draw == nil {
			for k := range v {
				v[k] = float32(r.NormFloat64())
			}
		}
		return v
	}
	whole := benches[0]
	var x, u [][]float32
	for k, i := range whole.flows {
		x = append(x, draw(i, size(whole.in[k])))
	}
	for _, s := range whole.shapes {
		u = append(u, draw(99, size(s)))
	}
	_, want := whole.run(t, x, u)
	for _, b := range benches {
		n := b.in[0][0]
		for first := 0; first < most; first += n {
			_, got := b.run(t, images(x, first, n), images(u, first, n))
			for k, w := range images(want, first, n) {
				if different := differences(got[k], w); different > 0 {
					t.Errorf("%s, %s, input %d: %d of %d numbers of image %d in a batch of %d have other "+
						"bits than in one of %d",
						op.Type, ex.Name, b.flows[k], different, len(w), first, n, most)
				}
			}
		}
	}
	return true
}

// images returns images first to first+n of values with a batch of [most].
func images(values [][]float32, first, n int) [][]float32 {
	var out [][]float32
	for _, v := range values {
		out = append(out, v[first*len(v)/most:(first+n)*len(v)/most])
	}
	return out
}

// differences returns the number of elements whose bits differ.
func differences(a, b []float32) int {
	n := 0
	for i := range b {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			n++
		}
	}
	return n
}

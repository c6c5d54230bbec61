package relevance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPolicies compares each policy at an activation with its definition: values, incoming and outgoing
// relevance.
func TestPolicies(t *testing.T) {
	x := []float32{-2, -1, 0, 1, 2, 9}
	six := Example{Inputs: [][]int{{6}, nil, nil}, Consts: map[int]any{1: float32(0), 2: float32(6)}}
	above := Example{Inputs: [][]int{{6}, nil}, Consts: map[int]any{1: float32(-5)}}
	one := Example{Inputs: [][]int{{6}}}
	for _, tt := range []struct {
		name     string
		policy   Policy
		op       *Op
		ex       Example
		incoming []float32
		passes   []float32
	}{
		{"Relu", Derivative(), opRelu, one, []float32{3, -3, 3, -3, 3, -4}, []float32{0, 0, 0, -3, 3, -4}},
		{"Relu", Guided(), opRelu, one, []float32{3, -3, 3, -3, 3, -4}, []float32{0, 0, 0, 0, 3, 0}},
		{"Relu", Deconvolution(), opRelu, one, []float32{3, -3, 3, -3, 3, -4}, []float32{3, 0, 3, 0, 3, 0}},
		{"Relu of at most 6", Guided(), opClip, six, []float32{3, -3, 3, -3, 3, 4},
			[]float32{0, 0, 0, 0, 3, 0}},
		{"Relu of at most 6", Deconvolution(), opClip, six, []float32{3, -3, 3, -3, 3, 4},
			[]float32{3, 0, 3, 0, 3, 4}},
		{"Clip from −5", Guided(), opClip, above, []float32{3, -3, 3, -3, 3, -4},
			[]float32{3, -3, 3, -3, 3, -4}},
	} {
		b, err := prepare(t, tt.op, tt.ex, tt.policy, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, back := b.run(t, [][]float32{x}, [][]float32{tt.incoming})
		// At the kink of Clip the derivative is undefined.
		got, want := back[0], tt.passes
		if tt.op == opClip && tt.policy.Name == "guided" {
			got[2], want[2] = 0, 0
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s, %s: %s", tt.name, tt.policy.Name, d)
		}
		b.close()
	}
}

package lower

import (
	"github.com/runexp/runexp/stages/internal/onnx"
)

// audit returns the sums of the accounts, one after the other.
func (u *unit) audit() error {
	f := u.graph.Fragment()
	zero := f.Floats("zero", []float32{0}, 1)
	var sums []string
	for _, e := range u.signature.Entries {
		for _, v := range []string{e.Outputs, e.Inputs, e.Constants, e.Magnitude} {
			if v == "" {
				v = zero
			}
			sums = append(sums, v)
		}
	}
	v := IO{"audit", []int{len(sums)}}
	f.OpTo(v.Value(), "Concat", sums, onnx.Attr{Name: "axis", Value: 0})
	u.graph.After(f)
	u.signature.Outputs = append(u.signature.Outputs, v)
	return nil
}

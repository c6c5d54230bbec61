package stages

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// The precisions of a model's passes: IEEE 754's 32 bits; the same with products of 10-bit mantissas,
// NVIDIA's TF32; Google's 16 bits with the range of float32 and a mantissa of 7 bits; and IEEE 754's 16 bits.
const (
	Float32  = "float32"
	TF32     = "tf32"
	BFloat16 = "bfloat16"
	Float16  = "float16"
)

// Precisions are all of them, the exact one first.
var Precisions = []string{Float32, TF32, BFloat16, Float16}

// Precise is embedded by the parameters of stages that run a model. [New] has float32 be the default.
type Precise struct {
	Precision string `yaml:"precision" key:"added" doc:"the arithmetic of the model's passes: one below float32 is faster and rounds more, and a device has some or none of them" choices:"float32|tf32|bfloat16|float16"`
}

// HasPrecision reports whether a stage's parameters have a precision.
func HasPrecision(params any) bool {
	_, ok := params.(inPrecision)
	return ok
}

// Deviates returns by how much a payload of an output port deviates from a processor's in float32: in the
// quantity that exhausts its tolerance most.
func (s *Stage) Deviates(params any, p Port, facts Facts, got, want []byte) Deviated {
	precision := PrecisionOf(params)
	if precision == Float32 {
		return Deviated{p.Name, Deviation(p.Type, got, want), s.Tolerance}
	}
	all := Rounded(p, facts, got, want)
	for i := range all {
		all[i].Tolerance = s.Rounding[precision].Of(all[i].Quantity)
	}
	return slices.MaxFunc(all, Deviated.Compare)
}

// A Rounding has how much a stage's results in a precision may deviate from those in float32, by the
// [Deviated.Quantity]: NaN is too much, and nil wasn't measured.
type Rounding map[string]float64

// mostFlips is the largest share of a curve's points at which the prediction may flip. It is no figure of a
// stage: which points lie between two classes depends on the image.
const mostFlips = 0.25

// Of returns the tolerance of a quantity. The value of an expression, which is made of logits, has theirs.
// What isn't listed doesn't depend on the arithmetic, and may not differ at all.
func (r Rounding) Of(quantity string) float64 {
	switch tolerance, listed := r[quantity]; {
	case listed:
		return tolerance
	case quantity == "correct":
		return mostFlips
	case quantity == "value":
		return r["logit"]
	}
	return 0
}

// Passes reports whether results in the precision deviate little enough in all quantities.
func (r Rounding) Passes() bool {
	for _, tolerance := range r {
		if math.IsNaN(tolerance) {
			return false
		}
	}
	return len(r) > 0
}

// CheckPrecision refuses a precision in which the stage wasn't measured, or deviates too much.
func (s *Stage) CheckPrecision(params any) error {
	p := PrecisionOf(params)
	r := s.Rounding[p]
	if r.Passes() || p == Float32 || !s.Device {
		return nil
	}
	why := "it isn't measured in %s yet"
	if r != nil {
		why = "it deviates too much in %s"
	}
	names := []string{Float32}
	for _, name := range Precisions {
		if s.Rounding[name].Passes() {
			names = append(names, name)
		}
	}
	return &FieldError{Field: "precision", Err: fmt.Errorf(why, p),
		Hint: "write precision: " + strings.Join(names, " or ")}
}

// InFloat32 returns a copy of parameters with the precision float32.
func (s *Stage) InFloat32(params any) any {
	if PrecisionOf(params) == Float32 {
		return params
	}
	out := s.NewParams()
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(params).Elem())
	out.(inPrecision).precise().Precision = Float32
	return out
}

// inPrecision is implemented by a pointer to parameters that embed [Precise].
type inPrecision interface{ precise() *Precise }

func (p *Precise) precise() *Precise { return p }

// PrecisionOf returns the precision of a stage's parameters, which [Stage.NewParams] has made: float32 if
// they have none.
func PrecisionOf(params any) string {
	if p, ok := params.(inPrecision); ok {
		return cmp.Or(p.precise().Precision, Float32)
	}
	return Float32
}

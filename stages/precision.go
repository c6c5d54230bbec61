package stages

import "cmp"

// The precisions of a model's passes: IEEE 754's 32 bits; the same with products of 10-bit mantissas, NVIDIA's
// TF32; Google's 16 bits with the range of float32 and a mantissa of 7 bits; and IEEE 754's 16 bits.
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

// inPrecision is implemented by a pointer to parameters that embed [Precise].
type inPrecision interface{ precise() *Precise }

func (p *Precise) precise() *Precise { return p }

// PrecisionOf returns the precision of a stage's parameters, which [Stage.NewParams] has made: float32 if they
// have none.
func PrecisionOf(params any) string {
	if p, ok := params.(inPrecision); ok {
		return cmp.Or(p.precise().Precision, Float32)
	}
	return Float32
}

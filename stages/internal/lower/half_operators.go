package lower

import "strings"

// A halfRole is how an operator takes part in a program in float16.
type halfRole int

const (
	single  halfRole = iota // computes in float32
	product                 // computes in float16
	either                  // computes in what costs the fewest Casts
)

// halfTable says of every operator how it takes part, and why. Operators that it lacks compute in float32.
var halfTable = []struct {
	role      halfRole
	operators string
	why       string
}{
	{product, "Conv ConvTranspose Einsum FusedMatMul Gemm MatMul",
		"products are where the time goes, and their errors of 2⁻¹¹ each have both signs"},
	{either, "Identity Flatten Reshape Squeeze Unsqueeze Expand Tile Transpose DepthToSpace SpaceToDepth " +
		"Concat Split Slice Gather GatherElements GatherND Pad Trilu Dropout",
		"copies elements, which rounds nothing"},
	{either, "Max Min MaxPool GlobalMaxPool ReduceMax ReduceMin Where Clip Relu Abs Neg",
		"chooses or negates elements, which rounds nothing"},
	{either, "Equal Greater GreaterOrEqual Less LessOrEqual",
		"compares elements, which are as they were rounded before"},
	{either, "Add Sub Mul LeakyRelu PRelu",
		"rounds an element once, by 2⁻¹¹ of the result"},

	{single, "ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceProd AveragePool " +
		"GlobalAveragePool Mean Sum CumSum",
		"adds many numbers: each addition would round the sum, which may exceed 65504 before it is divided"},
	{single, "BatchNormalization InstanceNormalization GroupNormalization LayerNormalization " +
		"LpNormalization LRN",
		"subtracts a mean from numbers near it, divides by a variance, whose squares may exceed 65504, and " +
			"adds an epsilon that may be 0 in float16"},
	{single, "Softmax LogSoftmax ReduceLogSumExp Exp Log Softplus Sigmoid Tanh Erf Elu Selu Celu",
		"exp exceeds 65504 from 11.1 on, and log of what float16 makes 0 is infinite"},
	{single, "Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh",
		"kernels expand it into a series, whose terms cancel"},
	{single, "Div Reciprocal Pow Sqrt Softsign",
		"a quotient of small numbers, a power or a root has other ranges than its operands"},
	{single, "HardSigmoid HardSwish Shrink",
		"adds a constant to an element before it multiplies, so that it rounds twice"},
	{single, "ThresholdedRelu", "WebGPU has a kernel in float16 that doesn't compile"},
	{single, "TopK", "the order of elements that are nearly equal decides on indices"},
	{single, "ScatterElements ScatterND", "may add many numbers to one place"},
	{single, "Resize", "weights between pixels are exact in float32, and scales must be"},
	{single, "Cast", "states a type itself"},
}

// halfRow is what the table says of an operator.
type halfRow struct {
	role halfRole
	why  string
}

// halfRows is [halfTable] by operator.
var halfRows = func() map[string]halfRow {
	rows := map[string]halfRow{}
	for _, r := range halfTable {
		for _, op := range strings.Fields(r.operators) {
			rows[op] = halfRow{r.role, r.why}
		}
	}
	return rows
}()

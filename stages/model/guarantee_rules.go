package model

import (
	"math"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A guaranteeRule derives the guarantee of a node's outputs from those of its inputs.
type guaranteeRule func(all *guarantees, n onnx.Node, in []guarantee) guarantee

// ruleOf returns the rule of a node's operator, or nil.
func ruleOf(n onnx.Node) guaranteeRule {
	switch n.Domain {
	case "", "ai.onnx", "com.microsoft":
		return guaranteeRules[n.OpType]
	}
	return nil
}

// guaranteeRules has the operators that occur after the last linear layer, and linear layers.
var guaranteeRules = func() map[string]guaranteeRule {
	table := map[string]guaranteeRule{}
	for _, group := range []struct {
		rule guaranteeRule
		ops  []string
	}{
		{layerRule, layers},
		{affineRule, []string{"BatchNormalization"}},
		{fusedRule, []string{"FusedConv", "FusedGemm"}},
		{wholeRule, views},
		{partRule, []string{"Slice", "Gather", "GatherND", "GatherElements", "Split", "Expand", "Tile",
			"DepthToSpace", "SpaceToDepth", "AveragePool", "GlobalAveragePool", "MaxPool", "GlobalMaxPool",
			"ReduceMean", "ReverseSequence", "QLinearGlobalAveragePool", "QLinearAveragePool"}},
		{quantisedRule, []string{"QuantizeLinear", "DequantizeLinear"}},
		{extremeRule, []string{"ReduceMax", "ReduceMin"}},
		{sumRule, []string{"ReduceSum"}},
	} {
		for _, op := range group.ops {
			table[op] = group.rule
		}
	}
	for op, f := range functions {
		table[op] = func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
			return mapped(n, in[0], f(n))
		}
	}
	for op, why := range map[string]string{
		"ArgMax": "chooses a class", "ArgMin": "chooses a class", "Hardmax": "chooses a class",
		"OneHot": "chooses a class", "Sign": "keeps nothing but signs",
		"TopK":              sorts,
		"NonMaxSuppression": "selects boxes: the model is a detector",
		"LpNormalization":   "makes all vectors equally long, as of an embedding",

		"LayerNormalization": normalises, "SimplifiedLayerNormalization": normalises,
		"SkipLayerNormalization": normalises, "RMSNormalization": normalises,
		"InstanceNormalization": normalises, "GroupNormalization": normalises,
		"MeanVarianceNormalization": normalises, "LRN": normalises,
	} {
		table[op] = func(_ *guarantees, n onnx.Node, _ []guarantee) guarantee {
			return decides(n, why)
		}
	}
	for op, rule := range operatorRules {
		table[op] = rule
	}
	return table
}()

// sorts describes TopK.
const sorts = "sorts: its columns are ranks, not classes"

const normalises = "normalises the features of each image, as an embedding's are"

// functions are nondecreasing functions of single numbers.
var functions = map[string]func(n onnx.Node) func(v float64) float64{
	"Relu": plain(func(v float64) float64 { return math.Max(v, 0) }),
	"LeakyRelu": func(n onnx.Node) func(v float64) float64 {
		slope := math.Abs(float64(n.Float("alpha", 0.01)))
		return func(v float64) float64 { return math.Max(v, 0) + slope*math.Min(v, 0) }
	},
	"PRelu":           plain(func(v float64) float64 { return v }),
	"ThresholdedRelu": plain(func(v float64) float64 { return math.Max(v, 0) }),
	"Elu":             plain(func(v float64) float64 { return math.Max(v, math.Expm1(math.Min(v, 0))) }),
	"Celu":            plain(func(v float64) float64 { return math.Max(v, math.Expm1(math.Min(v, 0))) }),
	"Selu": plain(func(v float64) float64 {
		return 1.0507 * math.Max(v, 1.6733*math.Expm1(math.Min(v, 0)))
	}),
	"Softplus":  plain(func(v float64) float64 { return math.Max(v, math.Log1p(math.Exp(v))) }),
	"Gelu":      plain(func(v float64) float64 { return math.Max(v, -0.17) }),
	"FastGelu":  plain(func(v float64) float64 { return math.Max(v, -0.17) }),
	"BiasGelu":  plain(func(v float64) float64 { return math.Max(v, -0.17) }),
	"QuickGelu": plain(func(v float64) float64 { return math.Max(v, -0.17) }),
	"HardSwish": plain(func(v float64) float64 { return math.Max(v, -0.375) }),
	"Mish":      plain(func(v float64) float64 { return math.Max(v, -0.31) }),
	"Swish":     plain(func(v float64) float64 { return math.Max(v, -0.28) }),
	"Shrink":    plain(func(v float64) float64 { return v }),
	"Tanh":      plain(math.Tanh),
	"Erf":       plain(math.Erf),
	"Atan":      plain(math.Atan),
	"Softsign":  plain(func(v float64) float64 { return 2 / math.Pi * math.Atan(v) }),
	"Sqrt":      plain(func(v float64) float64 { return math.Sqrt(math.Max(v, 0)) }),
}

func plain(f func(v float64) float64) func(onnx.Node) func(v float64) float64 {
	return func(onnx.Node) func(v float64) float64 { return f }
}

func layerRule(all *guarantees, n onnx.Node, in []guarantee) guarantee {
	out := all.mixed(n, in[0])
	if len(in) > 1 && in[0].varies && in[1].varies && out.by == "" && (n.OpType == "MatMul" ||
		n.OpType == "Einsum") { // weighted means, as members by their weights
		for i, x := range in[:2] {
			if y := in[1-i]; x.probability() && y.probability() && !x.log && !y.log {
				y.low, y.high, y.unit = 0, math.Inf(1), x.unit*y.unit
				y.high, y.whole, y.about = y.unit, false, true
				return y
			}
		}
	}
	return out
}

func affineRule(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
	out := in[0]
	if out.linear() {
		out.low, out.high = math.Inf(-1), math.Inf(1)
		return out
	}
	if out.by != "" {
		return decides(n, "scales every class by itself")
	}
	return unbounded
}

// fusedRule is the rule of a layer with an activation.
func fusedRule(_ *guarantees, n onnx.Node, _ []guarantee) guarantee {
	op := n.Text("activation", "")
	if f := functions[op]; f != nil {
		return mapped(n, unbounded, f(n))
	}
	if op == "Sigmoid" {
		return guarantee{high: 1, unit: 1, own: true, by: n.Label()}
	}
	if op == "" {
		return unbounded
	}
	return unknown(n)
}

func wholeRule(_ *guarantees, _ onnx.Node, in []guarantee) guarantee { return in[0] }

func partRule(_ *guarantees, _ onnx.Node, in []guarantee) guarantee {
	in[0].whole = false
	return in[0]
}

func quantisedRule(_ *guarantees, _ onnx.Node, in []guarantee) guarantee {
	in[0].rounds = true
	return in[0]
}

// extremeRule distinguishes the maximum over places from the maximum over classes.
func extremeRule(all *guarantees, n onnx.Node, in []guarantee) guarantee {
	if shape, ok := all.shapes[n.In(0)]; ok && len(shape) <= 2 && in[0].varies {
		return decides(n, "keeps one number of all classes")
	}
	in[0].whole = false
	return in[0]
}

func sumRule(all *guarantees, n onnx.Node, in []guarantee) guarantee {
	x := in[0]
	if x.by == "" {
		return guarantee{low: less(x.low), high: -less(-x.high), rounds: x.rounds}
	}
	from, to := all.shapes[n.In(0)], all.shapes[n.Output[0]]
	if from == nil || to == nil || onnx.Size(to) == 0 {
		return guarantee{low: less(x.low), high: -less(-x.high), by: x.by, own: x.own}
	}
	k := float64(onnx.Size(from)) / float64(onnx.Size(to))
	x.low, x.high, x.about, x.whole = x.low*k, x.high*k, true, false
	if x.low != x.low {
		x.low = 0
	}
	if x.unit *= k; x.log {
		x.unit /= k // the logarithm of a product
	}
	return x
}

// less is the lower bound of a sum of any number of numbers that are at least v.
func less(v float64) float64 {
	if v < 0 {
		return math.Inf(-1)
	}
	return v
}

// operatorRules are the rules of single operators.
var operatorRules = map[string]guaranteeRule{
	"Softmax": func(all *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{high: 1, unit: 1, whole: all.row(n.In(0)), by: n.Label()}
	},
	"QLinearSoftmax": func(all *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{high: 1, unit: 1, whole: all.row(n.In(0)), by: n.Label(), rounds: true}
	},
	"LogSoftmax": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{low: math.Inf(-1), unit: 1, log: true, by: n.Label()}
	},
	"Sigmoid": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{high: 1, unit: 1, own: true, by: n.Label()}
	},
	"HardSigmoid": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{high: 1, unit: 1, own: true, by: n.Label()}
	},
	"QLinearSigmoid": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{high: 1, unit: 1, own: true, by: n.Label(), rounds: true}
	},
	"Exp": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		x := in[0]
		out := guarantee{low: math.Exp(x.low), high: math.Exp(x.high), by: n.Label(), rounds: x.rounds}
		if x.log && x.unit > 0 {
			out.high, out.unit, out.own = 1, 1, x.own
		}
		return out
	},
	"Log": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		x := in[0]
		out := guarantee{low: math.Log(math.Max(x.low, 0)), high: math.Log(math.Max(x.high, 0)),
			by: n.Label(), rounds: x.rounds}
		if x.probability() && !x.log && math.Abs(x.unit-1) <= 1e-6 {
			out.unit, out.log, out.own = 1, true, x.own
		}
		return out
	},
	"Round": rounded(math.RoundToEven), "Floor": rounded(math.Floor), "Ceil": rounded(math.Ceil),
	"Cast": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		to := onnxpb.TensorProto_DataType(n.Int("to", 0))
		if floating(to) || !in[0].varies {
			return in[0]
		}
		return rounded(math.Trunc)(nil, n, in)
	},
	"Neg": func(_ *guarantees, _ onnx.Node, in []guarantee) guarantee { return negative(in[0]) },
	"Add": func(_ *guarantees, _ onnx.Node, in []guarantee) guarantee { return sumOf(in) },
	"Sum": func(_ *guarantees, _ onnx.Node, in []guarantee) guarantee { return sumOf(in) },
	"Mean": func(_ *guarantees, _ onnx.Node, in []guarantee) guarantee {
		share := 1 / float64(len(in))
		return times(sumOf(in), guarantee{low: share, high: share})
	},
	"Sub": func(all *guarantees, n onnx.Node, in []guarantee) guarantee {
		x, y := in[0], in[1]
		if all.normaliser(n.In(1), n.In(0)) { // LogSoftmax
			return guarantee{low: math.Inf(-1), unit: 1, log: true, by: n.Label()}
		}
		if n.In(0) == n.In(1) {
			return decides(n, "is 0 for every image")
		}
		out := plus(x, negative(y))
		if !x.varies && y.varies && y.unit > 0 && !y.log && x.low == x.high && x.low == y.unit {
			out.unit, out.own, out.by = y.unit, true, y.by // 1 − p
		}
		return out
	},
	"Mul": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee { return times(in[0], in[1]) },
	"Div": func(all *guarantees, n onnx.Node, in []guarantee) guarantee {
		return all.quotient(n, in[0], in[1])
	},
	"Reciprocal": func(all *guarantees, n onnx.Node, in []guarantee) guarantee {
		return all.quotient(n, guarantee{low: 1, high: 1}, in[0])
	},
	"Pow": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		x, k := in[0], in[1]
		switch {
		case x.probability() && !x.log && k.low == k.high && k.low > 0 && math.Abs(x.unit-1) <= 1e-6:
			return guarantee{high: math.Pow(x.high, k.low), unit: 1, own: x.own, by: x.by, rounds: x.rounds}
		case x.by == "" && !k.varies:
			out := guarantee{low: math.Inf(-1), high: math.Inf(1), rounds: x.rounds}
			if x.low >= 0 || k.low == k.high && math.Mod(k.low, 2) == 0 {
				out.low = 0
			}
			return out
		}
		return guarantee{low: 0, high: math.Inf(1), by: n.Label()}
	},
	"Abs": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		x := in[0]
		if x.low >= 0 {
			return x
		}
		x.high, x.low = math.Max(-x.low, x.high), 0
		x.unit, x.log = 0, false
		return x
	},
	"Clip": func(all *guarantees, n onnx.Node, in []guarantee) guarantee {
		low, high := float64(n.Float("min", float32(math.Inf(-1)))), float64(n.Float("max",
			float32(math.Inf(1))))
		if len(in) > 1 && n.In(1) != "" {
			low = in[1].low
		}
		if len(in) > 2 && n.In(2) != "" {
			high = in[2].high
		}
		return clippedTo(n, in[0], low, high)
	},
	"Max": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		out := in[0]
		for _, x := range in[1:] {
			switch {
			case !x.varies:
				out = clippedTo(n, out, x.low, math.Inf(1))
			case !out.varies:
				out = clippedTo(n, x, out.low, math.Inf(1))
			default:
				out = either(out, x)
			}
		}
		return out
	},
	"Min": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		out := in[0]
		for _, x := range in[1:] {
			switch {
			case !x.varies:
				out = clippedTo(n, out, math.Inf(-1), x.high)
			case !out.varies:
				out = clippedTo(n, x, math.Inf(-1), out.high)
			default:
				out = either(out, x)
			}
		}
		return out
	},
	"Where": func(_ *guarantees, _ onnx.Node, in []guarantee) guarantee {
		if len(in) < 3 {
			return constant
		}
		return either(in[1], in[2])
	},
	"Concat": func(_ *guarantees, _ onnx.Node, in []guarantee) guarantee {
		out := in[0]
		out.whole = false
		for _, x := range in[1:] {
			out = either(out, x)
		}
		return out
	},
	"Pad": func(_ *guarantees, _ onnx.Node, in []guarantee) guarantee {
		zero := guarantee{}
		if len(in) > 2 {
			zero = in[2]
		}
		zero.varies = false
		return either(in[0], zero)
	},
	"ReduceLogSumExp": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{low: math.Inf(-1), high: math.Inf(1), by: n.Label()}
	},
	"ReduceSumSquare": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{high: math.Inf(1), by: in[0].by}
	},
	"ReduceL1": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{high: math.Inf(1), by: in[0].by}
	},
	"ReduceL2": func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		return guarantee{high: math.Inf(1), by: in[0].by}
	},
}

// sumOf returns the guarantee of a sum.
func sumOf(in []guarantee) guarantee {
	out := in[0]
	for _, x := range in[1:] {
		varies := out.varies || x.varies
		out = plus(out, x)
		out.varies = varies
	}
	return out
}

// clippedTo returns the guarantee of numbers between bounds.
func clippedTo(n onnx.Node, x guarantee, low, high float64) guarantee {
	out := x
	out.low, out.high = math.Max(x.low, low), math.Min(x.high, high)
	if out.low > out.high {
		return decides(n, "leaves one number")
	}
	if out.low > x.low || out.high < x.high {
		out.whole = false
	}
	if x.varies && x.by == "" && !math.IsInf(out.low, 0) && !math.IsInf(out.high, 0) {
		if out.by = n.Label(); out.low == 0 && out.high == 1 { // a Sigmoid of straight lines
			out.unit, out.own = 1, true
		}
	}
	return out
}

// rounded returns the rule of an operator that rounds to whole numbers.
func rounded(f func(v float64) float64) guaranteeRule {
	return func(_ *guarantees, n onnx.Node, in []guarantee) guarantee {
		x := in[0]
		if x.varies && x.unit > 0 && x.unit < 10 && !x.log {
			return decides(n, "rounds probabilities to whole numbers")
		}
		x.low, x.high, x.rounds, x.whole = f(x.low), f(x.high), true, false
		return x
	}
}

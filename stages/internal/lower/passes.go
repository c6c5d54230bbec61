package lower

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// A pass is one row of the table: a step from a file to the prepared graph, or from there to a program.
type pass struct {
	// name is the name of the pass's file, here or in package rewrite or onnx, followed by the step if the
	// file has several.
	name  string
	kinds Kind               // the programs that need it
	when  func(u *unit) bool // a further condition, or nil
	run   func(u *unit) error
}

// Sets of kinds.
const (
	fromFile   = prepared | Verbatim
	fromGraph  = questioned | Attention | Comparison | ofReference
	questioned = Forward | Backward // the kinds with questions
	programs   = Verbatim | fromGraph
)

// passes are all passes in the order in which they run; constraints has the reasons for the order.
var passes = []pass{
	// From the file to the graph that programs share.
	{"kernel_shapes", fromFile, nil, inPlace(rewrite.KernelShapes)},
	{"topological_order", fromFile, nil, topologicalOrder},
	{"distinct_names", fromFile, nil, (*unit).distinctNames},
	{"verbatim", Verbatim, nil, (*unit).verbatim},
	{"single_precision", prepared, nil, onModel(rewrite.SinglePrecision)},
	{"dequantise", prepared, nil, onModel(rewrite.Dequantise)},
	{"flush_subnormals", prepared, nil, flushSubnormals},
	{"interface: model", prepared, nil, (*unit).modelInterface},
	{"group_normalization", prepared, nil, inPlace(rewrite.GroupNormalization)},
	{"constant_branches", fromFile, nil, (*unit).constantBranches},
	{"separate_pads", fromFile, nil, inPlace(rewrite.SeparatePads)},
	{"simplify", prepared, nil, (*unit).simplify},
	{"infer_shapes", prepared, nil, (*unit).inferShapes},
	{"emission_opset", prepared, nil, (*unit).emissionOpset},
	{"simplify: again", prepared, newOperators, (*unit).simplify},
	{"infer_shapes: again", prepared, newOperators, (*unit).inferShapes},
	{"emission_opset: again", prepared, newOperators, (*unit).emissionOpsetAgain},

	// From that graph to a program.
	{"attention: found", Attention, nil, (*unit).findAttention},
	{"channels_first", fromGraph, nil, (*unit).channelsFirst},
	{"sides", fromGraph, nil, (*unit).sides},
	{"fold_batchnorm", fromGraph, foldable, (*unit).foldBatchNorm},
	{"sink_gather", questioned, (*unit).derivatives, (*unit).sinkGather},
	{"gemm_alpha", questioned, bitExact, (*unit).gemmAlpha},
	{"pad_channels", questioned, padded, (*unit).padChannels},
	{"answer: explained", Comparison | ofReference, nil, (*unit).explainedNumber},
	{"reference: paired", Comparison, nil, (*unit).pairReference},
	{"interface: inputs", fromGraph, nil, (*unit).declareInputs},
	{"layer: substituted", questioned | Attention, substitutes, (*unit).substituteLayer},
	{"preprocess", fromGraph, nil, (*unit).preprocess},
	{"answer", questioned | Attention, nil, (*unit).answer},
	{"attention: returned", Attention, nil, (*unit).attend},
	{"layer: value", Forward, returnsLayer, (*unit).layerValue},
	{"backward", Backward | Comparison, nil, (*unit).backward},
	{"audit", Backward, audits, (*unit).audit},
	{"batch_invariant", fromGraph, nil, (*unit).batchInvariant},
	{"provider_forms", fromGraph, nil, (*unit).providerForms},
	{"interface: pruned", Comparison, nil, (*unit).seal},
	{"reference: split", Comparison, once, (*unit).splitReference},
	{"reference: inlined", Comparison, everyRun, (*unit).inlineReference},
	{"reference: value", ofReference, hasLayer, (*unit).referenceValue},
	{"interface: sealed", fromGraph, nil, (*unit).seal},
	{"half_precision", fromGraph, halved, (*unit).halfPrecision},
	{"ort_workarounds", programs, nil, (*unit).ortWorkarounds},
}

func topologicalOrder(u *unit) error { return rewrite.TopologicalOrder(u.model) }
func flushSubnormals(u *unit) error  { u.model.FlushSubnormals(); return nil }

// Conditions of passes.
func newOperators(u *unit) bool { return u.again }
func bitExact(u *unit) bool     { return u.derivatives() && !u.KeepNodes }
func padded(u *unit) bool       { return bitExact(u) && !u.Unrun }
func substitutes(u *unit) bool  { return u.Substitute != nil && u.Layer != "" }
func returnsLayer(u *unit) bool { return u.Substitute == nil && !u.AnswerOnly }
func audits(u *unit) bool       { return u.Audit }
func once(u *unit) bool         { return u.Once }
func everyRun(u *unit) bool     { return !u.Once }
func hasLayer(u *unit) bool     { return u.Layer != "" }
func halved(u *unit) bool       { return u.Kernels.Half }

// foldable keeps BatchNormalization for rules that treat it apart from the Conv.
func foldable(u *unit) bool { return u.Kind&questioned == 0 || !u.Rules.Apart && !u.Unrun }

// A constraint says that a pass runs before another, and why.
type constraint struct{ first, then, why string }

// constraints hold in the table of passes; a test checks them. Every pass is in at least one of them.
var constraints = []constraint{
	{"kernel_shapes", "simplify",
		"ONNX Runtime crashes if a kernel without a stated shape has too many axes"},
	{"kernel_shapes", "topological_order", "which reports wrong shapes"},
	{"topological_order", "verbatim", "later passes rely on nodes that follow their producers"},
	{"distinct_names", "verbatim", "ONNX Runtime fails if a weight has a name that it creates itself"},
	{"distinct_names", "simplify", "ONNX Runtime fails if a weight has a name that it creates itself"},
	{"topological_order", "single_precision", "later passes rely on nodes that follow their producers"},
	{"verbatim", "constant_branches",
		"conditions are constant for the input's shape, which the program declares"},
	{"single_precision", "dequantise", "scales in half precision are read as float32"},
	{"single_precision", "flush_subnormals", "half-precision numbers become subnormal float32"},
	{"dequantise", "interface: model", "which removes the quantised weights"},
	{"dequantise", "flush_subnormals", "dequantised weights may be subnormal"},
	{"flush_subnormals", "simplify", "constants are folded from flushed weights, as they are run"},
	{"interface: model", "constant_branches",
		"conditions are constant for the input's shape, which it fixes"},
	{"interface: model", "group_normalization", "nodes that the answer doesn't need aren't rewritten"},
	{"group_normalization", "simplify", "ONNX Runtime would inline the operator's definition"},
	{"constant_branches", "separate_pads", "pads of inlined branches are separated too"},
	{"constant_branches", "simplify", "ONNX Runtime frees values of constant branches too early"},
	{"separate_pads", "simplify", "ONNX Runtime would fuse a Pad of zeros with a MaxPool that pads with −∞"},
	{"simplify", "infer_shapes",
		"shapes computed from shapes become constants, so that fewer must be measured"},
	{"infer_shapes", "emission_opset", "some operators are rewritten by the shapes of their inputs"},
	{"emission_opset", "simplify: again",
		"ONNX Runtime knows some simplifications only for newer operators"},
	{"simplify: again", "infer_shapes: again", "new values have no types yet"},
	{"infer_shapes: again", "emission_opset: again",
		"the last adds no values, so that every value has a type"},

	{"attention: found", "channels_first", "attention is found by its nodes, as the prepared graph has them"},
	{"channels_first", "sides", "a layer that a question names keeps its value"},
	{"sides", "sink_gather", "which shrinks the last layer's input"},
	{"sides", "reference: paired",
		"the graphs of a comparison are paired node by node, so both have the same last layer"},
	{"channels_first", "fold_batchnorm",
		"a question names a value of the prepared graph, and folding removes some"},
	{"channels_first", "sink_gather",
		"a layer's value stays whole under the name that channels_first leaves it"},
	{"fold_batchnorm", "sink_gather", "a BatchNormalization would stop a Gather"},
	{"sink_gather", "gemm_alpha", "a Gather between Mul and Gemm would hide one from the other"},
	{"sink_gather", "pad_channels",
		"a Gather isn't an elementwise function, and would stop it"},
	{"gemm_alpha", "pad_channels", "a folded Mul needs no padding"},
	{"fold_batchnorm", "reference: paired",
		"the graphs of a comparison are paired node by node, so both are folded first"},
	{"answer: explained", "reference: paired", "the explained number is paired as well"},
	{"reference: paired", "interface: inputs",
		"graphs are paired node by node, before they differ by their inputs"},
	{"interface: inputs", "layer: substituted", "the substitute reads inputs"},
	{"interface: inputs", "preprocess", "images are inputs, or computed from inputs"},
	{"layer: substituted", "answer", "readers of the layer's value are replaced in the model alone"},
	{"interface: inputs", "layer: value", "the layer may be the image, which is an input"},
	{"preprocess", "backward",
		"the model's nodes are complete, with all readers of each value, which rules examine"},
	{"answer", "backward", "derivatives of probabilities read the answer"},
	{"answer", "attention: returned", "derivatives of probabilities read the answer"},
	{"layer: value", "batch_invariant", "it rewrites the nodes of the whole program"},
	{"backward", "audit", "which sums the accounts of backward passes"},
	{"audit", "batch_invariant", "its sums may be batch-dependent"},
	{"attention: returned", "batch_invariant",
		"rules know the model's operators, not their batch-invariant forms"},
	{"backward", "batch_invariant", "rules know the model's operators, not their batch-invariant forms"},
	{"batch_invariant", "provider_forms", "some batch-invariant forms are right everywhere, and stay"},
	{"provider_forms", "interface: pruned", "nodes that the rewritten ones no longer read are removed"},
	{"batch_invariant", "interface: pruned", "nodes that the rewritten ones no longer read are removed"},
	{"interface: pruned", "reference: split", "values of the reference that nothing reads aren't computed"},
	{"interface: pruned", "reference: inlined", "values of the reference that nothing reads aren't computed"},
	{"reference: split", "reference: value", "the layer's value is the last output"},
	{"reference: split", "interface: sealed", "it declares inputs and outputs"},
	{"reference: inlined", "interface: sealed", "it declares inputs"},
	{"reference: value", "interface: sealed", "it adds an output"},
	{"interface: sealed", "half_precision", "inputs and outputs, which stay float32, are declared"},
	{"half_precision", "ort_workarounds", "the nodes of the program are known"},
	{"interface: sealed", "ort_workarounds", "the nodes of the program are known"},
}

// inPlace and onModel turn rewrites of models into passes.
func inPlace(rewrite func(*onnx.Model)) func(*unit) error {
	return func(u *unit) error { rewrite(u.model); return nil }
}

func onModel[T any](rewrite func(*onnx.Model) (T, error)) func(*unit) error {
	return func(u *unit) error { _, err := rewrite(u.model); return err }
}

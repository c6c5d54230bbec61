package lower

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// A pass is one row of the table: a step from a file to the shared graph, or from there to a program.
type pass struct {
	name  string             // that of its file, here or in package rewrite, and which run of several it is
	kinds Kind               // what it is for
	when  func(u *unit) bool // a condition besides; nil is none
	run   func(u *unit) error
}

// Sets of kinds.
const (
	fromFile  = shared | Verbatim
	fromGraph = walks | Attention | Comparison | reference
	walks     = Forward | Backward // which are asked questions
	programs  = Verbatim | fromGraph
)

// passes are all passes in the order in which they run. Constraints has the reasons.
var passes = []pass{
	// From the file to the graph that programs share.
	{"kernel_shapes", fromFile, nil, inPlace(rewrite.KernelShapes)},
	{"topological_order", fromFile, nil, topologicalOrder},
	{"verbatim", Verbatim, nil, (*unit).verbatim},
	{"single_precision", shared, nil, onModel(rewrite.SinglePrecision)},
	{"dequantise", shared, nil, onModel(rewrite.Dequantise)},
	{"flush_subnormals", shared, nil, flushSubnormals},
	{"model_interface", shared, nil, (*unit).modelInterface},
	{"group_normalization", shared, nil, inPlace(rewrite.GroupNormalization)},
	{"constant_branches", fromFile, nil, (*unit).constantBranches},
	{"separate_pads", fromFile, nil, inPlace(rewrite.SeparatePads)},
	{"simplify", shared, nil, (*unit).simplify},
	{"infer_shapes", shared, nil, (*unit).inferShapes},
	{"emission_opset", shared, nil, (*unit).emissionOpset},
	{"simplify again", shared, newOperators, (*unit).simplify},
	{"infer_shapes again", shared, newOperators, (*unit).inferShapes},
	{"emission_opset again", shared, newOperators, (*unit).emissionOpsetAgain},

	// From that graph to a program.
	{"attention", Attention, nil, (*unit).findAttention},
	{"channels_first", fromGraph, nil, (*unit).channelsFirst},
	{"fold_batchnorm", fromGraph, foldable, (*unit).foldBatchNorm},
	{"sink_gather", walks, derivatives, (*unit).sinkGather},
	{"gemm_alpha", walks, bitExact, (*unit).gemmAlpha},
	{"pad_channels", walks, padded, (*unit).padChannels},
	{"explained_number", Comparison | reference, nil, (*unit).explainedNumber},
	{"pair_reference", Comparison, nil, (*unit).pairReference},
	{"declare_inputs", fromGraph, nil, (*unit).declareInputs},
	{"substitute_layer", walks, substitutes, (*unit).substituteLayer},
	{"preprocess", fromGraph, nil, (*unit).preprocess},
	{"answer", walks | Attention, nil, (*unit).answer},
	{"attention again", Attention, nil, (*unit).attend},
	{"layer_value", Forward, returnsLayer, (*unit).layerValue},
	{"backward", Backward | Comparison, nil, (*unit).backward},
	{"audit", Backward, audits, (*unit).audit},
	{"batch_invariant", fromGraph, nil, (*unit).batchInvariant},
	{"seal", Comparison, nil, (*unit).seal},
	{"split_reference", Comparison, once, (*unit).splitReference},
	{"inline_reference", Comparison, everyRun, (*unit).inlineReference},
	{"reference_value", reference, hasLayer, (*unit).referenceValue},
	{"seal again", fromGraph, nil, (*unit).seal},
	{"ort_workarounds", programs, nil, (*unit).ortWorkarounds},
}

func topologicalOrder(u *unit) error { return rewrite.TopologicalOrder(u.model) }
func flushSubnormals(u *unit) error  { u.model.FlushSubnormals(); return nil }

// Conditions of passes.
func newOperators(u *unit) bool { return u.again }
func derivatives(u *unit) bool  { return u.derivatives() }
func bitExact(u *unit) bool     { return u.derivatives() && !u.Plain }
func padded(u *unit) bool       { return bitExact(u) && !u.Unrun }
func substitutes(u *unit) bool  { return u.Substitute != nil && u.Layer != "" }
func returnsLayer(u *unit) bool { return u.Substitute == nil && !u.AnswerOnly }
func audits(u *unit) bool       { return u.Audit }
func once(u *unit) bool         { return u.Once }
func everyRun(u *unit) bool     { return !u.Once }
func hasLayer(u *unit) bool     { return u.Layer != "" }

// foldable leaves BatchNormalization to rules that treat it apart from the Conv.
func foldable(u *unit) bool { return u.Kind&walks == 0 || !u.Rules.Apart && !u.Unrun }

// inPlace and onModel make passes of rewrites of models.
func inPlace(rewrite func(*onnx.Model)) func(*unit) error {
	return func(u *unit) error { rewrite(u.model); return nil }
}

func onModel[T any](rewrite func(*onnx.Model) (T, error)) func(*unit) error {
	return func(u *unit) error { _, err := rewrite(u.model); return err }
}

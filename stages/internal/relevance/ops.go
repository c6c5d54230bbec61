package relevance

import (
	"cmp"
	"slices"
)

// All returns every operator with a known VJP, or known to have none, sorted by type.
func All() []*Op {
	all := differentiable()
	for _, o := range opaque {
		all = append(all, &Op{Type: o, Kind: Opaque})
	}
	slices.SortFunc(all, func(a, b *Op) int { return cmp.Compare(a.Type, b.Type) })
	return all
}

// operators returns [All] by type.
func operators() map[string]*Op {
	all := map[string]*Op{}
	for _, o := range All() {
		all[o.Type] = o
	}
	return all
}

// Supported reports whether an ONNX operator is in [All].
func Supported(opType string) bool { return operators()[opType] != nil }

// differentiable returns every operator with a VJP. A new one is a file op_<name>.go and one line here, in
// sorted order; a test names the missing line.
func differentiable() []*Op {
	return []*Op{
		opAbs,
		opAcos,
		opAcosh,
		opAdd,
		opAsin,
		opAsinh,
		opAtan,
		opAtanh,
		opAveragePool,
		opBatchNormalization,
		opCast,
		opCelu,
		opClip,
		opConcat,
		opConv,
		opConvTranspose,
		opCos,
		opCosh,
		opCumSum,
		opDepthToSpace,
		opDiv,
		opDropout,
		opEinsum,
		opElu,
		opErf,
		opExp,
		opExpand,
		opFlatten,
		opGather,
		opGatherElements,
		opGatherND,
		opGemm,
		opGlobalAveragePool,
		opGlobalMaxPool,
		opHardSigmoid,
		opHardSwish,
		opIdentity,
		opInstanceNormalization,
		opLRN,
		opLayerNormalization,
		opLeakyRelu,
		opLog,
		opLogSoftmax,
		opLpNormalization,
		opMatMul,
		opMax,
		opMaxPool,
		opMean,
		opMin,
		opMul,
		opNeg,
		opPRelu,
		opPad,
		opPow,
		opReciprocal,
		opReduceL1,
		opReduceL2,
		opReduceLogSumExp,
		opReduceMax,
		opReduceMean,
		opReduceMin,
		opReduceProd,
		opReduceSum,
		opReduceSumSquare,
		opRelu,
		opReshape,
		opResize,
		opScatterElements,
		opScatterND,
		opSelu,
		opShrink,
		opSigmoid,
		opSin,
		opSinh,
		opSlice,
		opSoftmax,
		opSoftplus,
		opSoftsign,
		opSpaceToDepth,
		opSplit,
		opSqrt,
		opSqueeze,
		opSub,
		opSum,
		opTan,
		opTanh,
		opThresholdedRelu,
		opTile,
		opTopK,
		opTranspose,
		opTrilu,
		opUnsqueeze,
		opWhere,
	}
}

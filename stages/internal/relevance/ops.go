package relevance

// All returns every operator that relevance can flow through, or is known to stop
// at. A new operator is a file op_<name>.go and one line here, in sorted order; a
// test names the line that's missing.
func All() []*Op {
	return []*Op{
		opAdd,
		opAveragePool,
		opBatchNormalization,
		opClip,
		opConcat,
		opConv,
		opDiv,
		opErf,
		opExpand,
		opFlatten,
		opGather,
		opGemm,
		opGlobalAveragePool,
		opIdentity,
		opLayerNormalization,
		opMatMul,
		opMaxPool,
		opMul,
		opPad,
		opPow,
		opReduceMean,
		opRelu,
		opReshape,
		opSigmoid,
		opSlice,
		opSoftmax,
		opSplit,
		opSqrt,
		opSqueeze,
		opSub,
		opTanh,
		opTranspose,
		opUnsqueeze,
	}
}

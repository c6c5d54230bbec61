"""Writes float16.json: what the quickstart's nets answer in float64, and in float64 with the operands and
results of products rounded to float16, but for the product that is the answer.

    python3 float16.py FOLDER_OF_NETS

It needs onnx and numpy, and shares nothing with the compiler: nodes are those of the files, computed by ONNX's
own reference."""

import json
import sys

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_conv import Conv as Conv64
from onnx.reference.ops.op_gemm import Gemm_7 as Gemm64
from onnx.reference.ops.op_matmul import MatMul as MatMul64

rounding = False


def half(x):
    return x.astype(np.float16).astype(np.float64) if x is not None and rounding else x


class Conv(Conv64):
    def _run(self, x, w, b=None, **attrs):
        return (half(super()._run(half(x), half(w), half(b), **attrs)[0]),)


class Gemm(Gemm64):
    def _run(self, a, b, c=None, **attrs):
        global rounding
        was, rounding = rounding, rounding and self.onnx_node.output[0] != "logits"
        y = half(super()._run(half(a), half(b), half(c), **attrs)[0])
        rounding = was
        return (y,)


class MatMul(MatMul64):
    def _run(self, a, b):
        return (half(super()._run(half(a), half(b))[0]),)


def double(tensor):
    if tensor.data_type == onnx.TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def doubled(path):
    model = onnx.load(path)
    for t in model.graph.initializer:
        double(t)
    for n in model.graph.node:
        for a in n.attribute:
            if a.HasField("t"):
                double(a.t)
    for v in list(model.graph.input) + list(model.graph.output):
        v.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return model


i = np.arange(2 * 3 * 64 * 64)
x = (np.sin(i * 0.01) + np.sin(i * 0.37)).astype(np.float32).astype(np.float64).reshape(2, 3, 64, 64)
out = {}
for net in ["vgg", "resnet", "vit"]:
    run = ReferenceEvaluator(doubled(f"{sys.argv[1]}/{net}.onnx"), new_ops=[Conv, Gemm, MatMul])
    answers = {}
    for name, rounding in [("exact", False), ("float16", True)]:
        answers[name] = [float(f"{v:.9g}") for v in run.run(None, {"input": x})[0].reshape(-1)]
    out[net] = answers
with open("float16.json", "w") as f:
    json.dump(out, f, indent=1)
    f.write("\n")

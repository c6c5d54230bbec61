"""Writes small nets that come in the forms in which real ones do.

    python nets.py FOLDER
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 8
CLASSES = 5


class Graph:
    def __init__(self, dtype=np.float32):
        self.rng = np.random.default_rng(1)
        self.dtype = dtype
        self.nodes, self.weights = [], []

    def weight(self, *shape, scale=None, offset=0.0):
        scale = scale or 1 / np.sqrt(np.prod(shape[1:]) or 1)
        return self.constant((self.rng.normal(size=shape) * scale + offset).astype(self.dtype))

    def constant(self, v):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(v), name))
        return name

    def op(self, op, *ins, outputs=1, **attrs):
        outs = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(ins), outs, **attrs))
        return outs[0] if outputs == 1 else outs

    def norm(self, x, channels):
        return self.op("BatchNormalization", x, self.weight(channels, scale=0.1, offset=1), self.weight(channels, scale=0.1),
                       self.weight(channels, scale=0.1), self.weight(channels, scale=0.1, offset=1), epsilon=1e-5)

    def body(self, x, channels=3):
        """Features of 6 channels at half the size."""
        x = self.op("Conv", x, self.weight(4, channels, 3, 3), self.weight(4, scale=0.1), pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        x = self.op("MaxPool", self.op("Relu", self.norm(x, 4)), kernel_shape=[2, 2], strides=[2, 2])
        x = self.op("Conv", x, self.weight(6, 4, 3, 3), self.weight(6, scale=0.1), pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        return self.op("Relu", x)

    def head(self, x, features=6):
        x = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.op("Gemm", x, self.weight(CLASSES, features), self.weight(CLASSES, scale=0.1), transB=1)

    def save(self, path, output, shape, opset):
        elem = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("images", elem, shape)],
            [helper.make_tensor_value_info(output, elem, [shape[0], CLASSES])], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4 if opset < 13 else 8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def main(folder):
    g = Graph(np.float16)
    g.save(folder / "half.onnx", g.head(g.body("images")), ["N", 3, SIZE, SIZE], 13)

    g = Graph()
    g.save(folder / "last.onnx", g.head(g.body(g.op("Transpose", "images", perm=[0, 3, 1, 2]))), ["N", SIZE, SIZE, 3], 13)

    g = Graph()
    x = g.op("Reshape", g.body("images"), g.constant(np.array([1, 6 * 16], np.int64)))
    g.save(folder / "single.onnx", g.op("Gemm", x, g.weight(CLASSES, 96), g.weight(CLASSES), transB=1), [1, 3, SIZE, SIZE], 13)

    g = Graph()
    g.save(folder / "softmax.onnx", g.op("Softmax", g.head(g.body("images")), axis=1), ["N", 3, SIZE, SIZE], 13)

    g = Graph()
    g.save(folder / "grey.onnx", g.head(g.body("images", 1)), ["N", 1, SIZE, SIZE], 13)

    # What looked different in opset 7.
    g = Graph()
    x = g.op("Dropout", g.body("images"), ratio=0.5)
    x = g.op("Upsample", x, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])
    x = g.op("Clip", g.op("Pad", x, pads=[0, 0, 1, 0, 0, 0, 0, 1], value=0.5), min=0.1, max=2.0)
    x = g.op("Slice", x, axes=[2, 3], starts=[1, 0], ends=[8, 9])
    a, b = g.op("Split", x, outputs=2, axis=1, split=[2, 4])
    b = g.op("Softmax", b)
    x = g.op("Concat", a, b, axis=1)
    x = g.op("Squeeze", g.op("Unsqueeze", x, axes=[0]), axes=[0])
    x = g.op("ReduceSum", x, axes=[2], keepdims=1)
    g.save(folder / "opset7.onnx", g.head(x), ["N", 3, SIZE, SIZE], 7)

    # What looks different in opset 21.
    g = Graph()
    x = g.op("Gelu", g.body("images"))
    x = g.op("Pad", x, g.constant(np.array([1, 2], np.int64)), "", g.constant(np.array([-1], np.int64)))
    a, b, c = g.op("Split", x, outputs=3, axis=3, num_outputs=3)
    x = g.op("Concat", g.op("Gelu", c, approximate="tanh"), g.op("Mish", a), b, axis=3)
    x = g.op("Resize", x, "", g.constant(np.array([2], np.float32)), axes=[2], mode="nearest", coordinate_transformation_mode="asymmetric",
             nearest_mode="floor")
    x = g.op("ReduceMean", x, g.constant(np.array([2, 3], np.int64)), keepdims=1)
    g.save(folder / "opset21.onnx", g.head(x), ["N", 3, SIZE, SIZE], 21)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

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

    def fused(self, op, *ins, **attrs):
        """An operator of ONNX Runtime's optimiser."""
        return self.op(op, *ins, domain="com.microsoft", **attrs)

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

    def save(self, path, output, shape, opset, check=True):
        elem = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("images", elem, shape)],
            [helper.make_tensor_value_info(output, elem, [shape[0], CLASSES])], self.weights)
        opsets = [helper.make_opsetid("", opset)]
        if any(n.domain for n in self.nodes):
            opsets.append(helper.make_opsetid("com.microsoft", 1))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=4 if opset < 13 else 8 if opset < 23 else 10)
        if check:
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

    # What came with opset 18, and normalisation by groups, which have a scale each up to
    # opset 20, and a channel later.
    g = Graph()
    x = g.op("GroupNormalization", g.body("images"), g.weight(3, scale=0.3, offset=1), g.weight(3, scale=0.3), num_groups=3, epsilon=0.01)
    x = g.op("Col2Im", g.op("Reshape", x, g.constant(np.array([0, 24, 4], np.int64))), g.constant(np.array([3, 5], np.int64)),
             g.constant(np.array([2, 3], np.int64)), strides=[2, 2], pads=[0, 1, 1, 0])
    x = g.op("Relu", g.op("Conv", x, g.weight(6, 4, 3, 3), g.weight(6, scale=0.1), kernel_shape=[3, 3]))
    g.save(folder / "opset18.onnx", g.head(x), ["N", 3, SIZE, SIZE], 18, check=False)  # it warns of that version

    # Images read between their pixels: where a grid says, and where the image does.
    g = Graph()
    x = g.body("images")
    grid = g.op("Tanh", g.op("Conv", x, g.weight(2, 6, 1, 1, scale=2.0), kernel_shape=[1, 1]))
    grid = g.op("Mul", g.op("Transpose", grid, perm=[0, 2, 3, 1]), g.constant(np.float32(1.4)))
    y = g.op("GridSample", x, grid, mode="bilinear", padding_mode="zeros")
    z = g.op("GridSample", x, grid, mode="bilinear", padding_mode="border", align_corners=1)
    lines = g.op("Concat", g.op("Shape", "images", end=1), g.constant(np.array([5, 3, 2], np.int64)), axis=0)
    fixed = g.op("Expand", g.constant((g.rng.random((1, 5, 3, 2)) * 2.4 - 1.2).astype(np.float32)), lines)
    x = g.op("Concat", *(g.op("GlobalAveragePool", g.op("Mul", v, v)) for v in (y, z, g.op("GridSample", x, fixed, mode="bilinear"))), axis=1)
    g.save(folder / "grid.onnx", g.head(x, 18), ["N", 3, SIZE, SIZE], 16)

    # Attention as one operator: heads behind each other, with fewer keys, a mask and
    # an order; and heads apart, turned by their positions, with a mask of what is seen.
    g = Graph()
    x = g.op("GroupNormalization", g.body("images"), g.weight(6, scale=0.3, offset=1), g.weight(6, scale=0.3), num_groups=2)
    x = g.op("Transpose", g.op("Reshape", x, g.constant(np.array([0, 6, 16], np.int64))), perm=[0, 2, 1])
    q, k, v = (g.op("MatMul", x, g.weight(6, n, scale=0.8)) for n in (16, 8, 6))
    causal = g.op("Attention", q, k, v, g.weight(16, 16, scale=0.5), q_num_heads=4, kv_num_heads=2, is_causal=1, scale=0.8, softcap=2.0)
    places = g.op("Concat", g.op("Shape", "images", end=1), g.constant(np.array([16], np.int64)), axis=0)
    places = g.op("Expand", g.constant(np.arange(16)[::-1].astype(np.int64)), places)
    angles = np.arange(16)[:, None] * np.array([[1.0, 0.3]])
    q = g.op("Transpose", g.op("Reshape", q, g.constant(np.array([0, 16, 4, 4], np.int64))), perm=[0, 2, 1, 3])
    q = g.op("RotaryEmbedding", q, *(g.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin)), places)
    k = g.op("RotaryEmbedding", k, *(g.constant(f(angles[:, :1]).astype(np.float32)) for f in (np.cos, np.sin)), places,
             num_heads=2, rotary_embedding_dim=2, interleaved=1)
    k, v = (g.op("Transpose", g.op("Reshape", x, g.constant(np.array([0, 16, 2, n], np.int64))), perm=[0, 2, 1, 3]) for x, n in ((k, 4), (v, 3)))
    seen = g.rng.random((1, 1, 16, 16)) < 0.6
    seen[0, 0, 5] = False
    apart = g.op("Attention", q, k, v, g.constant(seen))
    apart = g.op("Reshape", g.op("Transpose", apart, perm=[0, 2, 1, 3]), g.constant(np.array([0, 16, 12], np.int64)))
    x = g.op("Transpose", g.op("Add", g.op("Mul", causal, apart), apart), perm=[0, 2, 1])
    x = g.op("Reshape", x, g.constant(np.array([0, 12, 4, 4], np.int64)))
    g.save(folder / "attention.onnx", g.head(x, 12), ["N", 3, SIZE, SIZE], 23)

    # Long short-term memory: both ways along rows, with a state to start from, and
    # backwards with peepholes, of which only the last states are asked for.
    g = Graph()
    x = g.op("Reshape", g.op("Transpose", g.body("images"), perm=[3, 0, 2, 1]), g.constant(np.array([4, -1, 6], np.int64)))
    lines = g.op("Gather", g.op("Shape", x), g.constant(np.array([1], np.int64)), axis=0)
    start = g.op("Expand", g.weight(2, 1, 3, scale=0.5), g.op("Concat", g.constant(np.array([2], np.int64)), lines, g.constant(np.array([3], np.int64)), axis=0))
    both = g.op("LSTM", x, g.weight(2, 12, 6, scale=0.6), g.weight(2, 12, 3, scale=0.6), g.weight(2, 24, scale=0.3), "", start, start,
                direction="bidirectional", hidden_size=3)
    x = g.op("Transpose", g.op("Reshape", both, g.constant(np.array([4, 2, -1, 4, 3], np.int64))), perm=[3, 2, 0, 1, 4])
    x = g.op("Reshape", x, g.constant(np.array([4, -1, 6], np.int64)))
    _, h, c = g.op("LSTM", x, g.weight(1, 20, 6, scale=0.6), g.weight(1, 20, 5, scale=0.6), g.weight(1, 40, scale=0.3), "", "", "", g.weight(1, 15, scale=0.5),
                   outputs=3, direction="reverse", hidden_size=5)
    x = g.op("Reshape", g.op("Squeeze", g.op("Concat", h, c, axis=2), g.constant(np.array([0], np.int64))), g.constant(np.array([-1, 40], np.int64)))
    g.save(folder / "lstm.onnx", g.op("Gemm", x, g.weight(CLASSES, 40), g.weight(CLASSES), transB=1), ["N", 3, SIZE, SIZE], 14)

    # What ONNX Runtime's optimiser makes of a convolutional net and of a transformer,
    # with weights of four and eight bits.
    g = Graph()
    x = g.fused("FusedConv", "images", g.weight(16, 3, 3, 3), g.weight(16, scale=0.1), activation="Relu", pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.fused("FusedConv", x, g.weight(16, 16, 1, 1), g.weight(16, scale=0.1), x, activation="LeakyRelu", activation_params=[0.1], kernel_shape=[1, 1])
    x = g.fused("FusedConv", x, g.weight(8, 16, 1, 1), activation="HardSigmoid", activation_params=[0.3, 0.4], kernel_shape=[1, 1])
    x = g.fused("FusedConv", x, g.weight(8, 8, 1, 1), activation="Clip", activation_params=[-0.5, 0.5], kernel_shape=[1, 1])
    x = g.op("Transpose", g.op("Reshape", x, g.constant(np.array([0, 8, 16], np.int64))), perm=[0, 2, 1])
    x = g.fused("BiasGelu", x, g.weight(8))
    y, _, _, x = g.fused("SkipLayerNormalization", x, g.weight(1, 16, 8), g.weight(8, scale=0.3, offset=1), g.weight(8), g.weight(8), outputs=4, epsilon=0.01)
    g.nodes[-1].output[1:3] = ["", ""]
    y = g.fused("Attention", y, g.weight(8, 20, scale=0.7), g.weight(20), "", "", g.weight(1, 2, 16, 16, scale=0.5), num_heads=2, qkv_hidden_sizes=[8, 8, 4])
    y = g.fused("FastGelu", g.fused("FusedMatMul", y, g.weight(8, 4), transB=1, alpha=0.7), g.weight(8))
    x = g.fused("SkipSimplifiedLayerNormalization", x, y, g.weight(8, scale=0.3, offset=1), g.weight(8), epsilon=0.01)
    q, k, v = (g.op("MatMul", x, g.weight(8, 8, scale=0.7)) for _ in range(3))
    y = g.fused("MultiHeadAttention", q, k, v, g.weight(24, scale=0.5), num_heads=4, scale=0.8)
    scores = g.fused("FusedMatMul", y, x, transA=1, alpha=0.25)
    y = g.op("SimplifiedLayerNormalization", g.op("MatMul", y, scores), g.weight(8, scale=0.3, offset=1))
    small = lambda *shape: g.constant(g.rng.integers(0, 256, shape).astype(np.uint8))
    y = g.fused("MatMulNBits", y, small(20, 1, 8), g.weight(20, scale=0.1), small(20, 1), K=8, N=20, bits=4, block_size=16)
    y = g.fused("QuickGelu", g.fused("Gelu", y))
    y = g.fused("MatMulNBits", y, small(8, 2, 16), g.weight(16, scale=0.02), "", "", g.weight(8), K=20, N=8, bits=8, block_size=16)
    x = g.op("Gather", g.op("Add", x, y), g.constant(np.array(0, np.int64)), axis=1)
    x = g.fused("FusedGemm", x, g.weight(8, 8), g.weight(8), transB=1, alpha=1.2, activation="LeakyRelu", activation_alpha=0.2)
    g.save(folder / "fused.onnx", g.op("Gemm", x, g.weight(CLASSES, 8), g.weight(CLASSES), transB=1), ["N", 3, SIZE, SIZE], 14, check=False)

    # Sequences, with which PyTorch's exporter cuts unless it optimises.
    g = Graph()
    number = lambda i: g.constant(np.array(i, np.int64))
    x = g.op("SplitToSequence", g.body("images"), number(4), axis=1)
    a, b = (g.op("SequenceAt", x, number(i)) for i in (0, -1))
    x = g.op("SplitToSequence", a, number([1, 2, 1]), axis=-1)
    rows = g.op("SplitToSequence", a, axis=2, keepdims=0)
    row = g.op("Mul", g.op("SequenceAt", rows, number(1)), g.op("SequenceAt", rows, number(3)))
    turned = g.op("ConcatFromSequence", g.op("SequenceConstruct", row, g.op("SequenceAt", rows, number(0))), axis=2, new_axis=1)
    a = g.op("ConcatFromSequence", g.op("SequenceConstruct", g.op("SequenceAt", x, number(2)), g.op("SequenceAt", x, number(1)), a), axis=3)
    x = g.op("Concat", *(g.op("GlobalAveragePool", g.op("Mul", v, v)) for v in (a, b, turned)), axis=1)
    g.save(folder / "sequence.onnx", g.head(x, 10), ["N", 3, SIZE, SIZE], 18)

    # Means over places that lie before the channels, and over tokens, as transformers end.
    g = Graph()
    x = g.op("Transpose", g.body("images"), perm=[0, 2, 3, 1])
    places = g.op("ReduceMean", g.op("Tanh", g.op("MatMul", x, g.weight(6, 7))), axes=[1, 2], keepdims=0)
    x = g.op("Tanh", g.op("MatMul", g.op("Reshape", x, g.constant(np.array([0, 16, 6], np.int64))), g.weight(6, 6)))
    x = g.op("Concat", places, g.op("ReduceMean", x, axes=[1], keepdims=0), g.op("ReduceMean", g.op("Transpose", x, perm=[0, 2, 1]), axes=[2], keepdims=0), axis=1)
    x = g.op("Tanh", g.op("Gemm", x, g.weight(6, 19), g.weight(6), transB=1))
    g.save(folder / "tokens.onnx", g.op("Gemm", x, g.weight(CLASSES, 6), g.weight(CLASSES), transB=1), ["N", 3, SIZE, SIZE], 17)

    # Means over an odd number of places that lie behind an odd number of channels, over
    # both, and sums over channels.
    g = Graph()
    x = g.op("Tanh", g.op("Conv", "images", g.weight(9, 3, 2, 2), kernel_shape=[2, 2]))
    places = g.op("ReduceMean", x, axes=[2, 3], keepdims=0)
    lines = g.op("ReduceMean", x, axes=[1, 3], keepdims=0)
    channels = g.op("Flatten", g.op("ReduceSum", x, g.constant(np.array([1], np.int64)), keepdims=0))
    x = g.op("Tanh", g.op("Gemm", g.op("Concat", places, lines, channels, axis=1), g.weight(6, 65), g.weight(6), transB=1))
    g.save(folder / "means.onnx", g.op("Gemm", x, g.weight(CLASSES, 6), g.weight(CLASSES), transB=1), ["N", 3, SIZE, SIZE], 17)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Writes the nets of Figure 1 of Vukadin et al. (2024), and its input.

    python toy.py

A net reads two pixels, whose red is x, and ignores their green and blue. Two hidden
ReLUs have the weights below, and the class "sum" their sum; the class "none" is
always 0. All hidden neurons are 1 for two white pixels, whatever their weights. The
mask is on the second pixel. Needs onnx and Pillow.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

NETS = {  # weights of x to the first and to the second hidden neuron
    "equal": [[2, -1], [-1, 2]],
    "larger": [[2, -1], [-5, 6]],
    "largest": [[2, -1], [-17, 18]],
}


def net(hidden):
    first = np.zeros((2, 3, 2), np.float32)  # neurons, channels, pixels
    first[:, 0] = hidden
    weights = {"hidden": first.reshape(2, 6), "out": np.array([[1, 1], [0, 0]], np.float32)}
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["input"], ["x"]),
            helper.make_node("Gemm", ["x", "hidden"], ["h"], transB=1),
            helper.make_node("Relu", ["h"], ["a"]),
            helper.make_node("Gemm", ["a", "out"], ["logits"], transB=1),
        ],
        "toy",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 3, 1, 2])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


here = pathlib.Path(__file__).parent
for name, hidden in NETS.items():
    onnx.save(net(hidden), here / f"{name}.onnx")
Image.new("RGB", (2, 1), "white").save(here / "images" / "ones.png")
mask = Image.new("L", (2, 1), 0)
mask.putpixel((1, 0), 255)
mask.save(here / "masks" / "ones.png")

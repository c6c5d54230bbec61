"""Writes targets/: 20 random nets of five outputs, and for each of 12 expressions its value and its gradient at an
image, by PyTorch in double precision: the reference of TestTargets. Made with torch 2.15.0 and onnx 1.23.2:

    python targets.py
"""

import json
import pathlib

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent / "targets"
SIDE, CHANNELS = 8, 4
ACTIVATIONS = {"Tanh": torch.tanh, "Softplus": F.softplus, "Sigmoid": torch.sigmoid,
               "Elu": F.elu, "Relu": torch.relu}


def weights(seed):
    g = np.random.default_rng(seed)
    draw = lambda *shape: (g.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    return {"a": draw(CHANNELS, 3, 3, 3), "b": draw(CHANNELS, CHANNELS, 3, 3), "map": draw(3, CHANNELS, 1, 1),
            "classes": 3 * draw(5, CHANNELS * 16), "boxes": draw(24, CHANNELS * 16),
            "scores": 3 * draw(18, CHANNELS * 16), "embedding": draw(8, CHANNELS * 16)}


def forward(w, activation, x):
    """x is [3,8,8]; the outputs are those of one image."""
    act = ACTIVATIONS[activation]
    h = act(F.conv2d(x[None], w["a"], padding=1))
    h = act(F.conv2d(h, w["b"], padding=1, stride=2))
    flat = h.reshape(-1)
    boxes = (w["boxes"] @ flat).reshape(6, 4)
    boxes = torch.cat([boxes[:, :2], boxes[:, :2] + F.softplus(boxes[:, 2:]) + 0.5], 1)
    return {"classes": w["classes"] @ flat, "map": F.conv2d(h, w["map"])[0], "boxes": boxes,
            "scores": (w["scores"] @ flat).reshape(6, 3), "embedding": w["embedding"] @ flat}


def save(path, w, activation):
    def node(op, inputs, output, **attrs):
        return helper.make_node(op, inputs, [output], **attrs)
    nodes = [node("Conv", ["x", "a"], "c1", pads=[1, 1, 1, 1]), node(activation, ["c1"], "h1"),
             node("Conv", ["h1", "b"], "c2", pads=[1, 1, 1, 1], strides=[2, 2]), node(activation, ["c2"], "h2"),
             node("Flatten", ["h2"], "flat"), node("Conv", ["h2", "map_w"], "map")]
    constants = {"a": w["a"], "b": w["b"], "map_w": w["map"]}
    for name in ("classes", "boxes", "scores", "embedding"):
        constants[name + "_w"] = w[name].T.copy()
        nodes.append(node("MatMul", ["flat", name + "_w"], name if name in ("classes", "embedding") else name + "_0"))
    constants["shape_boxes"], constants["shape_scores"] = np.array([0, 6, 4]), np.array([0, 6, 3])
    constants["half"] = np.array(0.5, np.float32)
    for name, value in {"zero": [0], "two": [2], "four": [4], "axis": [2]}.items():
        constants[name] = np.array(value)
    nodes += [node("Reshape", ["boxes_0", "shape_boxes"], "boxes_1"),
              node("Slice", ["boxes_1", "zero", "two", "axis"], "corner"),
              node("Slice", ["boxes_1", "two", "four", "axis"], "extent_0"),
              node("Softplus", ["extent_0"], "extent_1"), node("Add", ["extent_1", "half"], "extent"),
              node("Add", ["corner", "extent"], "other"), node("Concat", ["corner", "other"], "boxes", axis=2),
              node("Reshape", ["scores_0", "shape_scores"], "scores")]
    outputs = {"classes": [5], "map": [3, 4, 4], "boxes": [6, 4], "scores": [6, 3], "embedding": [8]}
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, ["N", *v]) for k, v in outputs.items()],
        [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def area(b):
    return (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])


def overlap(a, b):
    lo, hi = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    shared = torch.clamp(hi - lo, min=0).prod(-1)
    return shared / (area(a) + area(b) - shared)


def corners(b):
    return torch.cat([b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2], -1)


def detection(z, o):
    like = F.cosine_similarity(z["scores"], o["scores"][0][None], dim=1, eps=0)
    return (overlap(z["boxes"], o["boxes"][0]) * like).max()


def finer(z, o):
    far = (o["classes"] - o["classes"][0]).abs()
    far[0] = torch.inf
    near = far.argsort()[:3]
    return z["classes"][0] - 0.6 * z["classes"][near].mean()


VECTORS = np.random.default_rng(99).standard_normal((4, 8)).astype(np.float32)

# z are the outputs for the image, o those for the original image (detached), p those for the other one.
EXPRESSIONS = {
    "classes[3]": lambda z, o, p: z["classes"][3],
    "log-odds(classes, 1)": lambda z, o, p: z["classes"][1] - z["classes"][[0, 2, 3, 4]].logsumexp(0),
    "softmax(2 * classes)[2]": lambda z, o, p: (2 * z["classes"]).softmax(0)[2],
    "finer(classes, 0)": lambda z, o, p: finer(z, o),
    "segmentation(1, map)": lambda z, o, p: (z["map"][1] * (o["map"].argmax(0) == 1)).sum(),
    "mean(logsumexp(map, 0))": lambda z, o, p: z["map"].logsumexp(0).mean(),
    "max(map[2]) - min(map[0, 1:3])": lambda z, o, p: z["map"][2].max() - z["map"][0, 1:3].min(),
    "max(iou(boxes, other(boxes[0])) * cosine(scores, other(scores[0])))": lambda z, o, p: detection(z, p),
    'sum(iou(boxes, frozen(boxes[1]), format="cxcywh"))':
        lambda z, o, p: overlap(corners(z["boxes"]), corners(o["boxes"][1])).sum(),
    "cosine(embedding, vectors)[2]":
        lambda z, o, p: F.cosine_similarity(z["embedding"], torch.tensor(VECTORS[2], dtype=torch.double), dim=0),
    "dot(embedding, other(embedding))": lambda z, o, p: z["embedding"] @ p["embedding"],
    "sum(sigmoid(scores) * frozen(scores > 0)) / 6 + sqrt(abs(classes[0]) + 1)":
        lambda z, o, p: (z["scores"].sigmoid() * (o["scores"] > 0)).sum() / 6 + (z["classes"][0].abs() + 1).sqrt(),
}


def main():
    HERE.mkdir(exist_ok=True)
    np.save(HERE / "vectors.npy", VECTORS)
    cases, arrays = [], {}
    for seed in range(20):
        activation = list(ACTIVATIONS)[seed % len(ACTIVATIONS)]
        w = weights(seed)
        save(HERE / f"net{seed:02}.onnx", w, activation)
        wd = {k: torch.tensor(v, dtype=torch.double) for k, v in w.items()}
        g = np.random.default_rng(1000 + seed)
        pixels = g.integers(0, 256, (2, 3, SIDE, SIDE), dtype=np.uint8)
        arrays[f"pixels{seed:02}"] = pixels
        image, other = (torch.tensor(v / 255, dtype=torch.double) for v in pixels)
        with torch.no_grad():
            p = forward(wd, activation, other)
            o = forward(wd, activation, image)
        for k, (text, f) in enumerate(EXPRESSIONS.items()):
            x = image.clone().requires_grad_()
            value = f(forward(wd, activation, x), o, p)
            value.backward()
            arrays[f"gradient{seed:02}_{k:02}"] = x.grad.numpy().astype(np.float32)
            cases.append({"net": seed, "expression": text, "value": value.item()})
    np.savez_compressed(HERE / "gradients.npz", **arrays)
    (HERE / "values.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Asks other programs that compute on ONNX files for the gradients or maps of nets, and compares them with runexp's.

    docs/equality/onnx-peers [FOLDER]

makes environments with those programs and calls this script, which takes the quickstart's nets and the published ones
in FOLDER, and writes

    onnx_peers.csv    a line for each net,
    ../equality.md    the same as a table, between its markers.

The gradient is that of the largest output with respect to the input, at an input of normal draws. The reference are
central differences along random directions of the net in double precision, by the reference implementation in the
package onnx; it is asked first whether it computes what ONNX Runtime does. Times are the least of several runs on one
thread, of one image, as multiples of the net's own forward passes in between, by the same runtime.
"""

import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import numpy as np
import onnx
import onnx.reference
import onnxruntime as ort
from onnx import numpy_helper, shape_inference, version_converter
from onnx.reference.op_run import OpRun

import onnx_ad

from page import into_page, table
from timing import multiple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
QUICKSTART = ["vgg", "vgg-bn", "resnet", "vit"]
PUBLISHED = ["cifar10_cct4_3x1", "cifar10_mlperftiny_resnet8", "cifar10_resnet20", "cifar10_vnncomp_resnet_2b",
             "cifar10_vnncomp_vit_pgd_2_3_16", "imagenet_mobilenet_v2_keras_1.0_224_dq",
             "imagenet_squeezenet1.1_caffe_227", "imagenet_vit_tiny_patch16_224", "mnist_vnncomp_convnet_maxpool"]
DIRECTIONS, STEP = 3, 1e-8  # so small that hardly a kink of ReLU or a pool lies within
OPSET = 17


def main():
    p = argparse.ArgumentParser()
    p.add_argument("nets", nargs="?", type=pathlib.Path, help="folder of the published nets")
    p.add_argument("--folder", type=pathlib.Path, required=True, help="for files made on the way")
    p.add_argument("--openvino", required=True, help="the Python that has OpenVINO XAI")
    p.add_argument("--runexp", default=str(ROOT / "bin" / "runexp"))
    o = p.parse_args()
    nets = [ROOT / "experiments" / "quickstart" / (n + ".onnx") for n in QUICKSTART]
    nets += [o.nets / (n + ".onnx") for n in PUBLISHED] if o.nets else []
    maps = json.loads(subprocess.run([o.openvino, HERE / "peers_openvino.py", *nets], capture_output=True, text=True,
                                     check=True).stdout)
    gomlx = re.search(r"onnx-gomlx v(\S+)", (HERE / "gomlx" / "go.mod").read_text())[1]
    head = ["net", "runexp: deviation", "time", "onnx-ad %s: the file as it is" % importlib.metadata.version("onnx-ad"),
            "prepared", "deviation", "time", "onnx-gomlx %s: prepared" % gomlx, "deviation", "time",
            "OpenVINO XAI 1.1.0: map", "time"]
    lines = []
    for net, (verdict, times) in zip(nets, maps):
        lines.append(line(net, o) + [few(verdict), times])
        print(" | ".join(lines[-1]), flush=True)
    if not o.nets:
        sys.exit("the page is left as it is: name the folder of the published nets")
    table(HERE / "onnx_peers.csv", [head] + lines)
    into_page("docs/equality/onnx-peers", head, lines)


def line(net, o):
    """Returns the table's line of a net, without OpenVINO XAI."""
    model = onnx.load(net)
    x, shape = drawn(model)
    bare = session(net)
    (y,) = bare.run([model.graph.output[0].name], {model.graph.input[0].name: x})
    label = int(y[0].argmax())
    upgraded = version_converter.convert_version(of_one_image(model, y.shape), OPSET)
    prepared = folded(upgraded, o.folder)
    directions, slopes = differences(upgraded, x.astype(np.float64), label, y)

    def deviation(gradient):
        found = gradient.astype(np.float64).reshape(shape)
        got = np.array([(found * d).sum() for d in directions])
        return "%.0e" % (np.linalg.norm(got - slopes) / np.linalg.norm(slopes))

    def judged(run):
        return [deviation(run()), "%.1f" % multiple(run, lambda: bare.run(None, {model.graph.input[0].name: x}))]

    ours = judged(runexp(net, x, y, label, o))
    as_is, _ = differentiated(model)
    verdict, adjoint = differentiated(prepared)
    theirs = judged(adjoint_pass(adjoint, x, y.shape, label)) if adjoint else ["", ""]
    said, found, times = gomlx_gradient(x, label, o)
    return [net.stem] + ours + [as_is, verdict] + theirs + [said, "" if found is None else deviation(found), times]


def few(text):
    """Returns an error in few words, as a cell of a table."""
    text = re.split(r";|, so | -- ", " ".join(text.replace("sorry, ", "").split()))[0]
    return textwrap.shorten(text, 100, placeholder=" …").replace("|", "/")


def drawn(model):
    """Returns an input of one image, and its shape."""
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    shape[0] = 1
    return np.random.default_rng(7).normal(size=shape).astype(np.float32), shape


def of_one_image(model, answers):
    """Returns the model with a batch of one."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    fixed.graph.ClearField("value_info")
    fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    for d, n in zip(fixed.graph.output[0].type.tensor_type.shape.dim, answers):
        d.dim_value = n
    return fixed


def folded(model, folder):
    """Returns the model with constants folded by ONNX Runtime, and with the shape of every value."""
    options = quiet()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "folded.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return shape_inference.infer_shapes(onnx.load(folder / "folded.onnx"), data_prop=True)


def differentiated(model):
    """Returns what onnx-ad says of a model, "accepted" or its error, and the model with the gradient, if it has one."""
    try:
        return "accepted", onnx_ad.reverse(model, layout="onnx")
    except Exception as e:  # noqa: BLE001: how it fails is the answer
        return few("refused: %s" % e), None


def adjoint_pass(adjoint, x, answers, label):
    """Returns the function that runs onnx-ad's model, which takes a weight for each output."""
    run = session(adjoint.SerializeToString())
    image, seed = [v.name for v in run.get_inputs()]
    weights = np.zeros(list(answers) + [1], np.float32)
    weights[0, label] = 1
    gradient = run.get_outputs()[-1].name
    return lambda: run.run([gradient], {image: x, seed: weights})[0]


def gomlx_gradient(x, label, o):
    """Returns what onnx-gomlx says of the prepared net, and, if accepted, its gradient and time."""
    image, gradient = o.folder / "image.f32", o.folder / "gradient.f32"
    x.astype("<f4").tofile(image)
    done = subprocess.run([o.folder / "gomlx", o.folder / "folded.onnx", image, ",".join(map(str, x.shape)), str(label),
                           gradient], capture_output=True, text=True, env={**os.environ, "GOMAXPROCS": "1"})
    said = done.stdout or done.stderr
    if done.returncode or said.startswith("refused"):
        return few(said), None, ""
    forward, both = map(float, said.split())
    return "accepted", np.fromfile(gradient, "<f4"), "%.1f" % (both / forward)


def runexp(net, x, y, label, o):
    """Returns the function that runs the file of runexp compile, whose map is the gradient with all channels."""
    path = o.folder / "gradient.onnx"
    probabilities = y.min() >= 0 and abs(y.sum() - 1) < 1e-4  # of which runexp would explain the logit
    values = ["abs=false", "reduce=none", "output=" + ("probability" if probabilities else "logit")]
    done = subprocess.run([o.runexp, "compile", str(net), "--method", "saliency", "--target-input", "--out", str(path)] +
                          [word for v in values for word in ("--set", v)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    run = session(path)
    feed = {run.get_inputs()[0].name: x, "target": np.array([label])}
    last = x.shape[1] != run.get_outputs()[-1].shape[1]  # the channels of the net's input

    def gradient():
        (found,) = run.run(["map"], feed)
        return np.moveaxis(found, 1, -1) if last else found
    return gradient


def differences(model, x, label, y):
    """Returns random directions, and the slopes of an output along them, of the net in double precision."""
    reference = onnx.reference.ReferenceEvaluator(double(model), new_ops=[Erf])

    def output(at):
        return reference.run([model.graph.output[0].name], {model.graph.input[0].name: at})[0]

    if np.abs(output(x) - y).max() > 1e-5 * np.abs(y).max():
        sys.exit("the reference and ONNX Runtime disagree on the net itself")
    rng = np.random.default_rng(8)
    directions = [rng.normal(size=x.shape) for _ in range(DIRECTIONS)]
    slopes = [(output(x + STEP * d) - output(x - STEP * d))[0, label] / (2 * STEP) for d in directions]
    return directions, np.array(slopes)


class Erf(OpRun):
    """The function in double precision: the package's own rounds to single."""

    def _run(self, x):
        return (np.vectorize(math.erf, otypes=[x.dtype])(x),)


def double(model):
    """Returns the model with every number of single precision in double precision."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    single, twice = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE

    def widen(t):
        if t.data_type == single:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))

    for t in m.graph.initializer:
        widen(t)
    for n in m.graph.node:
        for a in n.attribute:
            if a.type == a.TENSOR:
                widen(a.t)
            if n.op_type == "Cast" and a.name == "to" and a.i == single:
                a.i = twice
    for v in [*m.graph.input, *m.graph.output, *m.graph.value_info]:
        if v.type.tensor_type.elem_type == single:
            v.type.tensor_type.elem_type = twice
    return m


def quiet():
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return options


def session(model):
    return ort.InferenceSession(model if isinstance(model, bytes) else str(model), quiet(),
                                providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    main()

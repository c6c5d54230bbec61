"""Asks OpenVINO XAI for a model with a map, of each net: prints what it says and the time as a multiple of the net's.

    peers_openvino.py NET.onnx …

It has an environment of its own, since it needs NumPy 1. ReciproCAM, or its form for vision transformers, is its
default of models whose inside it can read; it has no gradients.
"""

import json
import logging
import sys

import numpy as np
import openvino as ov
import openvino_xai as xai

from timing import multiple

ONE = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}


def answer(net):
    core = ov.Core()
    try:
        found = xai.insert_xai(core.read_model(net), xai.Task.CLASSIFICATION)
        shape = [1] + [d.get_length() for d in list(found.inputs[0].get_partial_shape())[1:]]
        x = np.random.default_rng(7).normal(size=shape).astype(np.float32)
        bare, both = (core.compile_model(m, "CPU", ONE) for m in (core.read_model(net), found))
        return ["accepted", "%.1f" % multiple(lambda: both(x), lambda: bare(x))]
    except Exception as e:  # noqa: BLE001: how it fails is the answer
        return ["refused: " + " ".join(str(e).split()), ""]


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    print(json.dumps([answer(net) for net in sys.argv[1:]]))

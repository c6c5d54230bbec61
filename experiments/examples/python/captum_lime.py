"""captum's LIME, on an ONNX file by ONNX Runtime. Tried with captum 0.9.0, torch 2.15.0 and onnxruntime 1.32.0."""

import os

import captum.attr
import numpy as np
import onnxruntime
import torch

from runexp_xai.stage import maps

NET = "../../quickstart/vgg.onnx"

session = onnxruntime.InferenceSession(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), NET), providers=["CPUExecutionProvider"]
)


# files has the net, so that another net has other results. map is what every function reads; here it only has a size.
@maps(version=1, files=[NET], packages=["captum", "torch", "scikit-learn", "onnxruntime"])
def lime(map, image, segments, target, rng, samples=200):
    """captum's Lime: coefficients of segments in a lasso of the logits around the image, gray where a segment is out"""
    torch.set_num_threads(1)  # runexp runs a process for each core
    torch.manual_seed(int(rng.integers(2**31)))
    values = captum.attr.Lime(logits).attribute(
        torch.from_numpy((image[None] - np.float32(0.5)) / np.float32(0.5)),  # the preset half
        target=target,
        feature_mask=torch.from_numpy(segments.astype(np.int64))[None, None],
        n_samples=samples,
        perturbations_per_eval=50,
    )
    return values[0, 0].numpy()


def logits(batch):
    """Returns the net's answers on normalised images."""
    return torch.from_numpy(session.run(None, {"input": batch.numpy()})[0])

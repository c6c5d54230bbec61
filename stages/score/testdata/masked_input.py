"""Average drop, ADCC's parts and ARCC by pytorch-grad-cam 1.5.7 and torch-cam 0.5.0.

    pip install grad-cam==1.5.7 torchcam==0.5.0 torch onnxruntime 'numpy<2.4'
    python masked_input.py FOLDER masked_input.npz

FOLDER has smallcnn.onnx and smallcnn_io.npz. The libraries call the model through ONNX Runtime, which their
metrics allow: none takes a derivative. The noise of the imputation is 0, so that the numbers can be compared.
"""

import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from pytorch_grad_cam.metrics.arcc import ARCC
from pytorch_grad_cam.metrics.cam_mult_image import CamMultImageConfidenceChange, DropInConfidence
from pytorch_grad_cam.metrics.road import NoisyLinearImputer, ROADCombined
from pytorch_grad_cam.utils.model_targets import ClassifierOutputSoftmaxTarget
from torchcam.metrics import ClassificationMetric

NoisyLinearImputer.__init__.__defaults__ = (0.0,) + NoisyLinearImputer.__init__.__defaults__[1:]


class Net(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        self.session = onnxruntime.InferenceSession(path)

    def forward(self, x):
        name = self.session.get_inputs()[0].name
        return torch.from_numpy(self.session.run(None, {name: x.numpy().astype(np.float32)})[0])


def unit(v):
    low = v.min(axis=(1, 2), keepdims=True)
    high = v.max(axis=(1, 2), keepdims=True)
    return ((v - low) / (high - low)).astype(np.float32)


def method(input_tensor, targets=None):
    """A method without derivatives: the mean magnitude of a pixel's channels, scaled to [0,1]."""
    return unit(np.abs(input_tensor.numpy()).mean(axis=1))


class Extractor:
    """The maps of this script, as torch-cam asks for them."""

    def __init__(self, model, cams):
        self.model, self.cams = model, [torch.from_numpy(cams)]

    def __call__(self, class_idx=None, scores=None, normalized=True, **_):
        return self.cams

    def fuse_cams(self, cams):
        return cams[0]

    @contextmanager
    def _hooks_off(self):
        yield


def main(folder, out):
    model = Net(str(Path(folder) / "smallcnn.onnx"))
    x = torch.from_numpy(np.load(Path(folder) / "smallcnn_io.npz")["x"][:2].astype(np.float32))
    probability = torch.softmax(model(x), 1)
    classes = probability.argmax(1).tolist()
    targets = [ClassifierOutputSoftmaxTarget(c) for c in classes]
    r = np.random.default_rng(7)
    y, z = np.mgrid[0:32, 0:32] / 31
    smooth = unit(np.stack([np.exp(-((y - a) ** 2 + (z - b) ** 2) / 0.1) for a, b in r.uniform(0.2, 0.8, (2, 2))])
                  + 1e-3 * r.random((2, 32, 32)))
    found = {"classes": np.array(classes), "p": probability.max(1).values.numpy()}
    for name, cams in {"method": method(x), "smooth": smooth}.items():
        found[name] = cams
        found[name + "_change"] = CamMultImageConfidenceChange()(x, cams, targets, model)
        found[name + "_absolute_drop"] = DropInConfidence()(x, cams, targets, model)
        found[name + "_road"] = ROADCombined([20, 40, 60, 80])(x, cams, targets, model)
        arcc = ARCC(method)
        found[name + "_complexity"] = arcc.complexity(cams)
        found[name + "_coherency"] = arcc.coherency(x, cams, targets, model, method)
        found[name + "_arcc"] = arcc(x, cams, targets, model)
        m = ClassificationMetric(Extractor(model, cams), lambda v: torch.softmax(v, 1))
        m.update(x)
        s = m.summary()
        found[name + "_torchcam"] = np.array([s["avg_drop"], s["conf_increase"]])
    np.savez_compressed(out, **found)
    for k, v in found.items():
        if v.ndim < 3:
            print(k, v)


main(*sys.argv[1:])

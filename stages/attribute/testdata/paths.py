"""Reference maps of the methods along paths, in double precision.

    python paths.py ../../../experiments/quickstart paths.npz

with captum 0.9.0, shap 0.51.0, saliency 0.2.1, torch 2.15.0 and onnx. Expected gradients
are captum's GradientShap and shap's GradientExplainer, which are given the draws; Blur IG
is that of saliency. IDGI and IDG have no package: they are written down here from their
papers, and the official variant of IDG from the description of its code, each without the
other program. Of every map some values are kept, every STEP-th; images are formulas.
"""
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import onnx.numpy_helper
import saliency.core as saliency
import shap
import torch
import torch.nn.functional as F
from captum.attr import GradientShap

torch.set_default_dtype(torch.float64)
STEP = 37
SIDE = 64


class Net(torch.nn.Module):
    """The graph of an ONNX file, in double precision."""

    def __init__(self, path):
        super().__init__()
        g = onnx.load(path).graph
        self.nodes, self.input, self.output = g.node, g.input[0].name, g.output[0].name
        self.w = {t.name: torch.tensor(onnx.numpy_helper.to_array(t).astype(np.float64)) for t in g.initializer}

    def forward(self, x):
        v = {**self.w, self.input: x}
        for n in self.nodes:
            a = {t.name: onnx.helper.get_attribute_value(t) for t in n.attribute}
            i = [v[name] for name in n.input]
            v[n.output[0]] = getattr(self, n.op_type.lower())(a, *i)
        return v[self.output]

    def conv(self, a, x, w, b=None):
        top, left, *rest = a["pads"]
        assert [top, left] == rest
        return F.conv2d(x, w, b, a["strides"], (top, left))

    def batchnormalization(self, a, x, scale, bias, mean, var):
        return F.batch_norm(x, mean, var, scale, bias, False, 0, a["epsilon"])

    def maxpool(self, a, x):
        return F.max_pool2d(x, a["kernel_shape"], a["strides"], a["pads"][:2])

    def gemm(self, a, x, w, b):
        assert a["transB"] == 1
        return x @ w.T + b

    def relu(self, a, x):
        return F.relu(x)

    def add(self, a, x, y):
        return x + y

    def identity(self, a, x):
        return x

    def globalaveragepool(self, a, x):
        return x.mean((2, 3), keepdim=True)

    def flatten(self, a, x):
        return x.flatten(1)


def image(number):
    """A picture in uint8 [3, SIDE, SIDE], the same formula as in the test."""
    c, i, j = np.meshgrid(np.arange(3), np.arange(SIDE), np.arange(SIDE), indexing="ij")
    return ((i * (2 + c + number) + j * (3 + 2 * c) + i * j // (9 + number) + 40 * number) % 256).astype(np.uint8)


def normalised(number):
    return torch.tensor((image(number) / 255 - 0.5) / 0.5)[None]


def derivative(net, points, target, probability=False):
    """The derivatives and the outputs at points."""
    points = points.detach().clone().requires_grad_(True)
    out = net(points)
    if probability:
        out = out.softmax(1)
    out = out[:, target]
    return torch.autograd.grad(out.sum(), points)[0], out.detach()


def line(x, b, at):
    return b + torch.as_tensor(at).view(-1, 1, 1, 1) * (x - b)


def idgi(net, x, b, target, steps, probability):
    g, f = derivative(net, line(x, b, np.linspace(0, 1, steps)), target, probability)
    squares = g[:-1] ** 2
    return (squares / squares.sum((1, 2, 3), keepdim=True) * f.diff().view(-1, 1, 1, 1)).sum(0)


def idg_paper(net, x, b, target, steps):
    _, f = derivative(net, line(x, b, np.linspace(0, 1, steps)), target)
    slopes = f.diff().numpy()
    share = (slopes - slopes.min()) / (slopes.max() - slopes.min())
    exact = share / share.sum() * steps
    count = np.floor(exact).astype(int)
    for k in sorted(range(steps - 1), key=lambda k: -(exact[k] - count[k]))[:steps - count.sum()]:
        count[k] += 1
    at = [(k + m / n) / (steps - 1) for k, n in enumerate(count) for m in range(n)]
    width = np.diff([0.0] + at[1:] + [1.0])  # the first sample stands for what is before it, too
    g, _ = derivative(net, line(x, b, at), target)
    along = (g * (x - b)).sum((1, 2, 3))
    return ((along * torch.tensor(width)).view(-1, 1, 1, 1) * g).sum(0) * (x - b)[0]


def idg_official(net, x, b, target, steps):
    """Its slopes are those before a point; only places with samples move the beginning on."""
    alphas, step = np.linspace(0, 1, steps), 1 / (steps - 1)
    _, f = derivative(net, line(x, b, alphas), target)
    slopes = np.concatenate([[0], np.diff(f.numpy()) / step])
    share = (slopes - slopes.min()) / (slopes.max() - slopes.min())
    share[0] = 0
    exact = share / share.sum() * steps
    count = exact.astype(int)
    free = [k for k in np.argsort(-exact, kind="stable") if count[k] == 0]
    count[free[:steps - count.sum()]] = 1
    at, width, start = [], [], 0.0
    for n in count[count > 0]:
        at += list(np.linspace(start, start + step, n + 1)[:n])
        width += [step / n] * n
        start += step
    g, f = derivative(net, line(x, b, at), target)
    slope = np.concatenate([[0], np.diff(f.numpy()) / np.diff(at)])
    weight = torch.tensor(slope * np.array(width)).view(-1, 1, 1, 1)
    return (g * weight).mean(0) * (x - b)[0]


def draws(n, images):
    """Pairs of an image and a position, for the test too."""
    k = np.arange(n)
    return k * 5 % images, (k * 0.618034 + 0.25) % 1


def gradient_shap(net, x, background, target, n):
    which, t = draws(n, len(background))
    # captum takes t times the image and the rest of the baseline
    with mock.patch("numpy.random.choice", lambda *_: which), mock.patch("numpy.random.uniform", lambda *_: t):
        return GradientShap(net).attribute(x, background, n_samples=n, stdevs=0.0, target=target)[0]


def gradient_explainer(net, x, background, target, n):
    which, t = draws(n, len(background))
    places = [iter(which.tolist() * 100), iter(t.tolist() * 100)]
    with mock.patch("numpy.random.choice", lambda *_: next(places[0])), \
            mock.patch("numpy.random.uniform", lambda *_: next(places[1])):
        return torch.tensor(shap.GradientExplainer(net, background).shap_values(x, nsamples=n)[0, ..., target])


def blur_ig(net, x, target, **options):
    def call(batch, call_model_args, expected_keys):
        g, _ = derivative(net, torch.tensor(np.moveaxis(batch, -1, 1)), target)
        return {saliency.INPUT_OUTPUT_GRADIENTS: np.moveaxis(g.numpy(), 1, -1)}

    last = np.moveaxis(x[0].numpy(), 0, -1)
    return torch.tensor(np.moveaxis(saliency.BlurIG().GetMask(last, call, {}, **options), -1, 0))


def main(nets, out):
    kept = {}
    background = torch.cat([normalised(k) for k in range(2, 7)])
    for name in ("vgg", "resnet"):
        net = Net(nets / f"{name}.onnx").eval()
        for number in (0, 1):
            x, target = normalised(number), 3 + 4 * number
            zero = torch.zeros_like(x)
            maps = {
                "idgi": idgi(net, x, zero, target, 20, False),
                "idgi_baseline": idgi(net, x, normalised(7), target, 20, False),
                "idgi_probability": idgi(net, x, zero, target, 20, True),
                "idg_paper": idg_paper(net, x, zero, target, 20),
                "idg_official": idg_official(net, x, zero, target, 20),
                "gradient_shap": gradient_shap(net, x, background, target, 23),
                "gradient_explainer": gradient_explainer(net, x, background, target, 23),
                "blur_ig": blur_ig(net, x, target, max_sigma=50, steps=20),
                "blur_ig_defaults": blur_ig(net, x, target),
                "blur_ig_sqrt": blur_ig(net, x, target, max_sigma=50, steps=20, sqrt=True),
            }
            for key, m in maps.items():
                kept[f"{name}{number}_{key}"] = m.flatten()[::STEP].numpy()
    np.savez_compressed(out, **kept)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

"""Reference maps of absLRP in double precision: equation 12 of the paper, and the way of
the authors' code of January 2024, of which there are no official numbers.

    python abslrp.py MODELS > abslrp.json

MODELS is the folder of the official nets, whose weights are read. The nets are written
down layer by layer: each layer is a function h, and |h|, which algorithm 1 adds. Of
every map its norm and some values are kept.
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
IMAGES = 2
STEP = 11
TINY = 1e-9


def total(r):
    """The sum of each image, in a form that multiplies r."""
    return r.flatten(1).sum(1).view(-1, *[1] * (r.dim() - 1))


def equation12(h, magnitudes, inputs, r):
    """What each input gets of r."""
    back = torch.autograd.grad(h + magnitudes, inputs, r / (h.abs() + TINY), retain_graph=True)
    return [x * g / 2 for x, g in zip(inputs, back)]


def january(h, magnitudes, inputs, r):
    """The same for either sign of r, each of which keeps its sum; inputs share by theirs."""
    out = [0] * len(inputs)
    for half in (r.clamp(min=0), r.clamp(max=0)):
        parts = equation12(h, magnitudes, inputs, half)
        ways = sum(total(p) for p in parts) + TINY if len(parts) > 1 else None
        for k, p in enumerate(parts):
            share = 1 if ways is None else total(p).view(-1, *[1] * (p.dim() - 1)) / ways.view(-1, *[1] * (p.dim() - 1))
            scale = total(half.abs()).view(-1, *[1] * (p.dim() - 1))
            out[k] = out[k] + scale * share * p / (total(p.abs()) + TINY)
    return out


class Pass:
    """A net's layers in the order in which they are asked, and relevance back through them."""

    def __init__(self, variant, weights):
        self.january, self.w, self.layers = variant == "official-2024-01", weights, []

    def layer(self, h, magnitudes, *inputs):
        leaves = [v.detach().clone().requires_grad_(True) for v in inputs]
        out = h(*leaves)
        self.layers.append((inputs, leaves, out, None if magnitudes is None else magnitudes(*leaves)))
        self.layers[-1] += (out.detach().clone(),)
        return self.layers[-1][-1]

    def back(self, answer, r, image):
        arrived = {id(answer): r}
        for inputs, leaves, h, magnitudes, out in reversed(self.layers):
            r = arrived.pop(id(out), None)
            if r is None:
                continue
            if magnitudes is None:
                parts = torch.autograd.grad(h, leaves, r)
            else:
                parts = (january if self.january else equation12)(h, magnitudes, leaves, r)
            for v, p in zip(inputs, parts):
                arrived[id(v)] = arrived.get(id(v), 0) + p.detach()
        return arrived[id(image)]

    def same(self, f, x):
        """A module that moves elements: in January y = x is a layer too."""
        return self.layer(f, (lambda v: f(v).abs()) if self.january else None, x)

    def rectified(self, x):
        return self.layer(F.relu, F.relu, x)

    def affine(self, f, x, w, b):
        return self.layer(lambda v: f(v, w, b), lambda v: f(v.abs(), w.abs(), None if b is None else b.abs()), x)

    def conv(self, x, name, **how):
        return self.affine(lambda v, w, b: F.conv2d(v, w, b, **how), x, self.w[name + ".weight"], self.w.get(name + ".bias"))

    def linear(self, x, name, rows=slice(None)):
        return self.affine(F.linear, x, self.w[name + ".weight"][rows], self.w[name + ".bias"][rows])

    def pooled(self, x, *how):
        return self.layer(lambda v: F.max_pool2d(v, *how), lambda v: F.max_pool2d(v, *how), x)

    def added(self, x, y):
        return self.layer(lambda a, b: a + b, lambda a, b: a.abs() + b.abs(), x, y)

    def times(self, x, y):
        return self.layer(lambda a, b: a @ b, lambda a, b: a.abs() @ b.abs(), x, y)

    def scaled(self, x, w, b):
        return self.layer(lambda v: v * w + b, lambda v: v.abs() * w.abs() + b.abs(), x)

    def batch_norm(self, x, name):
        mean, var, w, b = (self.w[f"{name}.{k}"].view(-1, 1, 1) for k in ("running_mean", "running_var", "weight", "bias"))
        scale = (var + 1e-5).sqrt()
        return self.scaled(self.layer(lambda v: (v - mean) / scale, lambda v: (v.abs() + mean.abs()) / scale, x), w, b)

    def layer_norm(self, x, name):
        w, b = self.w[name + ".weight"], self.w[name + ".bias"]
        mean, scale = x.mean(-1, keepdim=True), (x.var(-1, keepdim=True, unbiased=False) + 1e-6).sqrt()
        if self.january:
            return self.layer(lambda v: (v - mean) / scale * w + b, lambda v: ((v - mean) / scale * w).abs() + b.abs(), x)
        return self.scaled(self.layer(lambda v: (v - mean) / scale, lambda v: (v.abs() + mean.abs()) / scale, x), w, b)

    def activated(self, f, x):
        return self.layer(f, (lambda v: f(v).abs()) if self.january else (lambda v: f(v.abs())), x)

    def softmax(self, x):
        def f(v):
            e = (v - v.amax(-1, keepdim=True).detach()).exp()
            return e / e.sum(-1, keepdim=True).detach()

        return self.activated(f, x)


def vgg(p, x):
    for k in (1, 2, 3):
        x = p.rectified(p.conv(x, f"conv{k}", padding=1))
        if k < 3:
            x = p.pooled(x, 2)
    x = p.rectified(p.linear(p.same(lambda v: v.flatten(1), x), "fc1"))
    return p.linear(x, "fc2")


def resnet(p, x):
    x = p.rectified(p.batch_norm(p.conv(x, "conv1", stride=2, padding=3), "bn1"))
    x = p.pooled(x, 3, 2, 1)
    for name in sorted({k.rsplit(".conv1.", 1)[0] for k in p.w if ".conv1." in k}):
        stride = 2 if name[-1] == "0" and name != "layer1.0" else 1
        y = p.rectified(p.batch_norm(p.conv(x, name + ".conv1", stride=stride, padding=1), name + ".bn1"))
        y = p.batch_norm(p.conv(y, name + ".conv2", padding=1), name + ".bn2")
        if name + ".downsample.0.weight" in p.w:
            x = p.batch_norm(p.conv(x, name + ".downsample.0", stride=stride), name + ".downsample.1")
        x = p.rectified(p.added(x, y))
    x = p.layer(lambda v: v.mean((2, 3)), lambda v: v.abs().mean((2, 3)), x)
    return p.linear(x, "fc")


def vit(p, x):
    width, heads = p.w["cls_token"].shape[-1], 3
    x = p.same(lambda v: v.flatten(2).transpose(1, 2), p.conv(x, "patch_embed.proj", stride=8))
    x = p.same(lambda v: torch.cat((p.w["cls_token"].expand(len(v), -1, -1), v), 1), x)
    x = p.added(x, p.w["pos_embed"].expand(len(x), -1, -1))
    for k in range(3):
        name = f"blocks.{k}."
        y = p.layer_norm(x, name + "norm1")
        q, key, v = (
            p.same(lambda u: u.unflatten(2, (heads, -1)).transpose(1, 2), p.linear(y, name + "attn.qkv", slice(i * width, (i + 1) * width)))
            for i in range(3)
        )
        scale = (width // heads) ** -0.5
        a = p.layer(lambda a, b: a @ b.transpose(2, 3) * scale, lambda a, b: a.abs() @ b.abs().transpose(2, 3) * scale, q, key)
        y = p.same(lambda u: u.transpose(1, 2).flatten(2), p.times(p.softmax(a), v))
        x = p.added(x, p.linear(y, name + "attn.proj"))
        y = p.activated(F.gelu, p.linear(p.layer_norm(x, name + "norm2"), name + "mlp.fc1"))
        x = p.added(x, p.linear(y, name + "mlp.fc2"))
    return p.linear(p.same(lambda v: v[:, 0], p.layer_norm(x, "norm")), "head")


def main():
    folder, out = Path(sys.argv[1]), []
    for name, net in (("smallcnn", vgg), ("timm_resnet_basic2", resnet), ("timm_vit", vit)):
        state, io = np.load(folder / f"{name}_state.npz"), np.load(folder / f"{name}_io.npz")
        weights = {k.replace("__", "."): torch.tensor(v.astype(np.float64)) for k, v in state.items() if v.dtype.kind == "f"}
        for variant in ("paper", "official-2024-01"):
            for k in range(IMAGES):
                image, p = torch.tensor(io["x"][k : k + 1].astype(np.float64)), Pass(variant, weights)
                answer = net(p, image)
                assert np.abs(answer.numpy() - io["logits"][k]).max() < 1e-4
                target = int(answer.argmax())
                r = p.back(answer, F.one_hot(torch.tensor([target]), answer.shape[1]).double(), image)
                r = (r / (r.abs().sum() if variant == "paper" else 1)).flatten().numpy()
                out.append({"net": name, "variant": variant, "image": k, "target": target, "step": STEP,
                            "norm": float(f"{np.linalg.norm(r):.9g}"), "values": [float(f"{v:.7g}") for v in r[::STEP]]})
    print("[\n" + ",\n".join(json.dumps(v) for v in out) + "\n]")


main()

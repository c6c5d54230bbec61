"""Reference maps of FullGrad, in double precision.

    python full_grad.py ROOT full_grad.json

ROOT is the project's folder, with the quickstart's nets. Made with grad-cam 1.5.7, torch
2.15.0 and numpy 2.4.6. "official-gildenblat" is that code's own, before it stretches the
sum; "paper" and "official-srinivas" are written here, one layer after the other: the map of
Srinivas and Fleuret (NeurIPS 2019) with a range for each channel, and what their code makes
of it, with one for each layer. Every third value of a map is kept; the image is a
formula.
"""
import json
import sys

import numpy as np
import pytorch_grad_cam as pgc
import torch
import torch.nn.functional as F
from cams import ROOT, TARGET, grid, image, nets, train
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn


class Summed(pgc.FullGrad):
    """Keeps the sum of the layers' maps."""

    def aggregate_multi_layers(self, cam_per_target_layer):
        self.raw = np.sum(cam_per_target_layer, axis=1)
        return super().aggregate_multi_layers(cam_per_target_layer)


def constant(module):
    """What a module adds to its output, None for nothing."""
    if isinstance(module, nn.BatchNorm2d):
        deviation = torch.sqrt(module.running_var + module.eps)
        return (module.bias - module.weight * module.running_mean / deviation)[:, None, None]
    if isinstance(module, nn.Conv2d) and module.bias is not None:
        return module.bias[:, None, None]
    if isinstance(module, (nn.Linear, nn.LayerNorm)):
        return module.bias
    return None


def scaled(share, by_layer, guard):
    """Magnitudes [1,K,h,w], less their minimum and divided by their range."""
    share = share.abs()
    axes = (1, 2, 3) if by_layer else (2, 3)
    share = share - share.amin(axes, keepdim=True)
    span = share.amax(axes, keepdim=True) + guard
    return torch.where(span > 0, share / span, torch.zeros(()))


def dense(net, x, by_layer, guard, corners):
    """The map, and what the shares of all constants and of the image sum to."""
    added = []  # a constant, and the value that it is added to

    def keep(module, _, output):
        if constant(module) is not None:
            added.append((constant(module), output))

    hooks = [m.register_forward_hook(keep) for m in net.modules()]
    x = x.clone().requires_grad_()
    if hasattr(net, "positions"):
        tokens = net.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([net.token.expand(1, -1, -1), tokens], 1) + net.positions
        added.append((net.positions, y))
        logit = net.head(net.norm(net.blocks(y))[:, 0])[0, TARGET]
    else:
        logit = net(x)[0, TARGET]
    grads = torch.autograd.grad(logit, [x] + [v for _, v in added])
    for hook in hooks:
        hook.remove()
    out = scaled(grads[0] * x.detach(), by_layer, guard).sum(1)[0]
    total = (grads[0] * x).sum()
    for (b, value), g in zip(added, grads[1:]):
        share = (b * g).detach()
        total = total + share.sum()
        if value.ndim < 3:
            continue
        plane = scaled(grid(share), by_layer, guard).sum(1, keepdim=True)
        out = out + F.interpolate(plane, x.shape[2:], mode="bilinear", align_corners=corners)[0, 0]
    return out, float((total - logit).detach())


def main():
    out = {}

    def keep(key, values):
        out[key] = [float(f"{v:.7g}") for v in np.asarray(values)[::3, ::3].ravel()]
        print(key, len(out[key]), flush=True)

    for name in ("vgg", "vgg-bn", "resnet", "vit"):
        net = nets.NETS[name]()
        train.go_on(net, ROOT / f"experiments/quickstart/{name}.onnx")
        net = net.double().eval().requires_grad_(False)
        if name != "vit":
            cam = Summed(net, [])
            cam(image(64), [ClassifierOutputTarget(TARGET)])
            keep(f"{name} official-gildenblat", cam.raw[0])
        for variant, how in {"paper": (False, 0, False), "official-srinivas": (True, 1e-6, True)}.items():
            values, left = dense(net, image(64), *how)
            keep(f"{name} {variant}", values)
            print(name, "the shares miss the logit by", left)
    with open(sys.argv[2], "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()

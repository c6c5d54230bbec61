"""Reference maps of AttnLRP and CP-LRP with the γ-rule, by the authors' code, in double
precision.

    python attn_lrp.py ROOT attn_lrp.json

ROOT is the project's folder, beside which the shared nets lie. Made with lxt 2.1, zennit
0.5.1, torch 2.15.0, torchvision 0.29.2 and timm 1.0.31. Of every map, the image times its
gradient, the sum, the norm and every STEP-th value are kept; images are formulas.

LXT patches torchvision's vision transformer itself. For nets that it has no patches of,
its rules are put where its own patches have them: stop_gradient at queries and keys or at
the softmax, divide_gradient at queries, keys and values. Its γ-rule is Zennit's, at the
modules Conv2d and Linear. That file multiplies and divides by values in turn.
"""
import json
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import numpy as np
import timm
import torch
import torch.nn.functional as F
import types

import lxt
# LXT's list of language models doesn't load with the transformers of today, and isn't needed.
models = types.ModuleType("lxt.efficient.models")
models.__path__ = [str(Path(lxt.__path__[0]) / "efficient/models")]
models.get_default_map = None
sys.modules["lxt.efficient.models"] = models
from lxt.efficient import monkey_patch, monkey_patch_zennit  # noqa: E402
from lxt.efficient.models.vit_torch import cp_LRP  # noqa: E402
from lxt.efficient.patches import layer_norm_forward, non_linear_forward, patch_method  # noqa: E402
from lxt.efficient.rules import divide_gradient, stop_gradient  # noqa: E402
from torch import nn
from torchvision.models import vision_transformer
from zennit.composites import LayerMapComposite
from zennit.rules import Gamma

ROOT = Path(sys.argv[1]).resolve()
sys.path += [str(ROOT / "experiments/quickstart"), str(ROOT / "stages/internal/program/zoo")]
import nets  # noqa: E402
import train  # noqa: E402
import zoo  # noqa: E402

torch.set_default_dtype(torch.float64)
SAMPLES = 60
# γ of Conv layers and of linear ones, of the authors' example; 0 is no γ-rule
GAMMAS = [(0, 0), (0.25, 0.05), (100, 1)]


def image(side):
    """The picture of paths.py."""
    i, j = np.mgrid[0:side, 0:side]
    x = np.stack([(i * (2 + c) + j * (3 + 2 * c) + i * j // 9) % 256 for c in range(3)])
    return torch.tensor(x[None] / 255.0)


class Attend:
    """Puts LXT's rules into products and softmax, wherever a net's code calls them."""

    def __init__(self, rules):
        self.rules = rules
        self.product, self.softmax, self.sdpa = torch.Tensor.__matmul__, torch.Tensor.softmax, F.scaled_dot_product_attention

    def matmul(self, a, b):
        y = self.product(a, b)
        both = self.rules == "attn-lrp" and a.requires_grad and b.requires_grad
        return divide_gradient(y, 2) if both else y

    def soft(self, x, *args, **kwargs):
        y = self.softmax(x, *args, **kwargs)
        return stop_gradient(y) if self.rules == "cp-lrp" else y

    def attention(self, q, k, v, *args, **kwargs):
        if self.rules == "cp-lrp":
            return self.sdpa(stop_gradient(q), stop_gradient(k), v, *args, **kwargs)
        return self.sdpa(divide_gradient(q, 4), divide_gradient(k, 4), divide_gradient(v, 2), *args, **kwargs)

    def patches(self):
        return [mock.patch.object(torch.Tensor, "__matmul__", lambda a, b: self.matmul(a, b)),
                mock.patch.object(torch.Tensor, "matmul", lambda a, b: self.matmul(a, b)),
                mock.patch.object(torch.Tensor, "softmax", lambda x, *a, **k: self.soft(x, *a, **k)),
                mock.patch.object(F, "scaled_dot_product_attention", self.attention)]


def relevance(net, x, target, rules, conv, linear, own):
    """The image times its gradient. own: the net's attention is patched by LXT itself."""
    hooks = []
    if conv:
        hooks.append((nn.Conv2d, Gamma(conv)))
    if linear:
        hooks.append((nn.Linear, Gamma(linear)))
    composite = LayerMapComposite(hooks)
    composite.register(net)
    patches = [] if own else Attend(rules).patches()
    for p in patches:
        p.start()
    x = x.clone().requires_grad_()
    y = net(x)
    y[0, target].backward()
    for p in patches:
        p.stop()
    composite.remove()
    return float(y[0, target].detach()), (x * x.grad)[0].detach().numpy()


def quickstart():
    net = nets.NETS["vit"]()
    train.go_on(net, ROOT / "experiments/quickstart/vit.onnx")
    return net, 2 * image(64) - 1


def tiny():
    net = timm.create_model("vit_tiny_patch16_224")
    train.go_on(net, next(d for d in (ROOT / "shared", ROOT.parent / "shared") if d.exists()) / "data/models/imagenet_vit_tiny_patch16_224.onnx")
    for m in net.modules():  # of classes of timm's own
        if isinstance(m, nn.LayerNorm) and type(m).forward is not layer_norm_forward:
            patch_method(layer_norm_forward, type(m))
        elif type(m).__name__ == "GELU" and not hasattr(type(m), "original_forward"):
            patch_method(non_linear_forward, type(m), keep_original=True)
    return net, 2 * image(224) - 1


def subset(name):
    known = json.load(open(ROOT / f"stages/internal/program/zoo/testdata/subset.{name}.json"))
    with mock.patch.object(torch, "get_default_dtype", lambda: torch.float32):
        torch.set_default_dtype(torch.float32)
        net = zoo.rebuilt("subset/" + name, known.get("gain", zoo.GAINS[0]))
        torch.set_default_dtype(torch.float64)
    return net, image(32)


def main():
    # of torchvision's vision transformer the whole patch, of which LayerNorm and GELU serve all nets
    monkey_patch_zennit()
    attention = nn.MultiheadAttention.forward
    monkey_patch(vision_transformer, cp_LRP)
    patched, nn.MultiheadAttention.forward = nn.MultiheadAttention.forward, attention
    out = {"versions": {p: version(p).partition("+")[0] for p in ("lxt", "zennit", "torch", "torchvision", "timm")}}
    for name, build in {"quickstart/vit": quickstart, "imagenet_vit_tiny_patch16_224": tiny,
                        "subset/vit": partial(subset, "vit"), "subset/swin": partial(subset, "swin")}.items():
        net, x = build()
        net = net.double().eval().requires_grad_(False)
        target = 3
        for rules in ("cp-lrp", "attn-lrp"):
            own = name == "subset/vit" and rules == "cp-lrp"
            nn.MultiheadAttention.forward = patched if own else attention
            for conv, linear in GAMMAS:
                logit, r = relevance(net, x, target, rules, conv, linear, own)
                step = max(1, r.size // SAMPLES)
                out[f"{name} {rules} {conv} {linear}"] = {
                    "logit": float(f"{logit:.8g}"), "sum": float(f"{r.sum():.8g}"),
                    "norm": float(f"{np.linalg.norm(r):.8g}"), "step": step,
                    "values": [float(f"{v:.6g}") for v in r.ravel()[::step]]}
                print(name, rules, conv, linear, logit, r.sum(), np.linalg.norm(r), flush=True)
    with open(sys.argv[2], "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()

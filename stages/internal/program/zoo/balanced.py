"""Gradients with balanced attention, norms, activations and products, without the other
program: autograd, in double precision, of a net in which these operators are detached.

    python balanced.py FOLDER FILE [NET...]

writes to FILE, for each net of zoo.py in FOLDER, the gradients of its target by the
balances of the names below: their norm, and every STEP-th value. Made with torch 2.15.0,
torchvision 0.29.2, timm 1.0.31 and transformers 5.24.0.

Of LibraGrad, whose code exchanges the modules of some transformers, the definitions are
used, as of its paper (CVPR 2025): what is detached is

  - attention: the softmax;
  - norms: deviations, lengths and divisors;
  - activations: y = x·(y/x), with the quotient detached; f(0) is no part of the quotient;
  - products: half of either factor.

attn-lrp takes the derivative of softmax, and halves both products of attention.
"""
import json
import os
import sys
from glob import glob
from unittest import mock
from contextlib import ExitStack

import numpy as np
import torch

from detached import ACTIVATIONS, PRODUCTS, Detached, open_
from zoo import TARGET, logits, rebuilt

ELEMENTWISE = ACTIVATIONS | {"sigmoid", "hardsigmoid", "square"}
BALANCES = {
    "balanced": dict(attention="detach", activation="ratio", product="half"),
    "attn-lrp": dict(attention="quarter", activation="ratio", product="half"),
    "cp-lrp": dict(attention="detach", activation="plain", product="plain"),
    "decompx": dict(attention="detach", activation="ratio", product="plain"),
}
SAMPLES = 24


class Balanced(Detached):
    def __init__(self, attention, activation, product):
        super().__init__()
        self.how = dict(attention=attention, activation=activation, product=product)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        plain = name if name.startswith("__") else name.rstrip("_")
        if plain in ("softmax", "_softmax"):
            y = func(*args, **kwargs)
            return y.detach() if self.how["attention"] == "detach" else y
        if plain in ("pow", "__pow__") and args[1] < 0:
            return func(*args, **kwargs).detach()
        if plain in ELEMENTWISE | {"pow", "__pow__"} and open_(args[0]):
            return self.activation(func, args, kwargs)
        if plain in PRODUCTS | {"einsum"}:
            return self.product(func, plain, args, kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def activation(self, func, args, kwargs):
        x, rest = args[0], args[1:]
        if self.how["activation"] == "plain":
            return func(*args, **kwargs)
        kwargs = {k: v for k, v in kwargs.items() if k != "inplace"}
        f = lambda v: func(v.detach().clone(), *rest, **kwargs)
        y, origin = f(x), f(torch.zeros_like(x))
        near = (f(x / 2 + 1e-6) - f(x / 2 - 1e-6)) / 2e-6  # of |x| so small that the quotient has no digits
        slope = torch.where(x.abs() < 1e-7, near, (y - origin) / torch.where(x == 0, 1, x))
        return x * slope.detach() + origin

    def halved_by(self, y, which, opened):
        halves = self.how[which] not in ("plain",) and opened > 1
        return y * 0.5 + (y * 0.5).detach() if halves else y

    def product(self, func, name, args, kwargs):
        if name == "einsum":
            factors = args[1] if isinstance(args[1], (list, tuple)) else args[1:]
            return self.halved_by(func(*args, **kwargs), "attention", sum(map(open_, factors)))
        where = 1 if name == "baddbmm" else 0
        opened = sum(map(open_, args[where:where + 2]))
        if name == "baddbmm":
            x, y = args[1:3]
            return kwargs.get("beta", 1) * args[0] + kwargs.get("alpha", 1) * self.halved_by(x @ y, "attention", opened)
        which = "attention" if "mat" in name or name == "bmm" else "product"
        return self.halved_by(func(*args, **kwargs), which, opened)

    def attention(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        assert not is_causal and not enable_gqa
        a = self.halved_by(q @ k.transpose(-2, -1), "attention", 2)
        a = a * (q.shape[-1] ** -0.5 if scale is None else scale)
        if attn_mask is not None:
            a = a.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else a + attn_mask
        a = a.softmax(-1)
        if self.how["attention"] == "detach":
            return a.detach() @ v
        return self.halved_by(a @ v, "attention", 2)


def gradient(net, image, target, mode):
    """A logit, and its gradient in the mode. Functions of torch.nn.functional are followed
    down to those that they are made of."""
    x = image.clone().requires_grad_()
    with ExitStack() as stack:
        for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
            stack.enter_context(mock.patch.object(torch.nn.functional, name, lambda *a: False))
        stack.enter_context(mode)
        y = logits(net, x)
    y[0, target].backward()
    return float(y[0, target].detach()), x.grad[0].double().numpy()


def main():
    folder, file, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    out = {}
    for path in sorted(glob(os.path.join(folder, "*.json"))):
        known = json.load(open(path))
        name = known.get("name")
        if "target" not in known or wanted and name not in wanted:
            continue
        image = torch.tensor(np.load(path[:-5] + ".image.npy"))[None].double()
        try:
            net = rebuilt(name, known.get("gain", 2**0.5)).requires_grad_(False).double()
            row = {}
            for balance, how in BALANCES.items():
                answer, g = gradient(net, image, TARGET, Balanced(**how))
                assert abs(answer - known["logits"][TARGET]) <= 1e-6 * max(1, abs(answer)), "another answer"
                step = max(1, g.size // SAMPLES)
                row[balance] = {"norm": float(f"{np.linalg.norm(g):.7g}"), "step": step,
                                "values": [float(f"{v:.6g}") for v in g.ravel()[::step]]}
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {str(e)[:200]}", flush=True)
            continue
        out[name] = row
        print(name, flush=True)
    with open(file, "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()

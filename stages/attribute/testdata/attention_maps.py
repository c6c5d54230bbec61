"""Reference maps of attention and its gradients, in double precision.

    python attention_maps.py ROOT attention_maps.json

ROOT is the project's folder, with the quickstart's net vit. Made with torch 2.15.0 and numpy
2.4.6, of the papers' definitions: the attention of each block is kept, and differentiated by
autograd; matrices are multiplied whole.

  - generic-attention: R = I, R + mean of heads of max(∇A ⊙ A, 0)·R (Chefer et al., ICCV 2021,
    equations 5 and 6), from block START on; the row of the class token at the patches.
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(sys.argv[1]).resolve()
sys.path.append(str(ROOT / "experiments/quickstart"))
import nets  # noqa: E402
import train  # noqa: E402
from cams import TARGET, image  # noqa: E402

torch.set_default_dtype(torch.float64)


def kept(net, x):
    """The logits, and the attention of each block."""
    found, softmax = [], torch.Tensor.softmax

    def keep(t, *args, **kwargs):
        found.append(softmax(t, *args, **kwargs))
        found[-1].retain_grad()
        return found[-1]

    torch.Tensor.softmax = keep
    try:
        return net(x), found
    finally:
        torch.Tensor.softmax = softmax


def generic(net, x, start, probability):
    y, attention = kept(net, x)
    (y.softmax(-1) if probability else y)[0, TARGET].backward()
    r = torch.eye(attention[0].shape[-1])
    for a in attention[start:]:
        r = r + (a.grad * a).clamp(min=0)[0].mean(0) @ r
    return r[0, 1:].detach()


def main():
    out = {}
    for name in ("vit", "vit-16"):
        net = nets.NETS[name]()
        train.go_on(net, ROOT / f"experiments/quickstart/{name}.onnx")
        net = net.double().eval()
        for start in (0, 2):
            for output in ("logit", "probability"):
                values = generic(net, image(64), start, output == "probability").numpy()
                out[f"{name} generic-attention {start} {output}"] = [float(f"{v:.7g}") for v in values]
    with open(sys.argv[2], "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()

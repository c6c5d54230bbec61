"""A net with rounded activations and weights, and its straight-through derivatives by
PyTorch's fake_quantize, in double precision.

    python quantised.py quantised.onnx quantised.json

Made with torch 2.15.0 and onnx 1.23.2. The image is the formula of paths.py, in [0, 1].
Activations are rounded to unsigned integers, of which the reduced range ends at 127, and
to signed ones, weights for each channel; some values are beyond the bounds. Of random
nets the first is taken whose single precision rounds as double does. Of every map, the
image times its gradient, the sum, the norm and every STEP-th value are kept.
"""
import json
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import nn

SIDE, CLASSES, TARGET, SAMPLES = 32, 5, 3, 80


def image():
    i, j = np.mgrid[0:SIDE, 0:SIDE]
    x = np.stack([(i * (2 + c) + j * (3 + 2 * c) + i * j // 9) % 256 for c in range(3)])
    return torch.tensor(x[None] / 255.0)


def rounded(x, scale, zero, low, high):
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ratio = False
        self.first, self.second = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, CLASSES)

    def weight(self, layer):
        w = layer.weight
        scale = w.detach().abs().amax(tuple(range(1, w.dim()))).float() / 127
        return torch.fake_quantize_per_channel_affine(w, scale, torch.zeros(len(w), dtype=torch.int32), 0, -128, 127)

    def gelu(self, x):
        return x * (F.gelu(x) / x).detach() if self.ratio else F.gelu(x)

    def forward(self, x):
        x = rounded(x, 0.0035, 3, 0, 255)  # to 0.882: the brightest pixels are beyond
        x = F.relu(F.conv2d(x, self.weight(self.first), self.first.bias, 2, 1))
        x = rounded(x, 0.004, 0, 0, 127)
        y = self.gelu(F.conv2d(x, self.weight(self.second), self.second.bias, 1, 1))
        y = rounded(y, 0.003, -100, -128, 127)  # from -0.084
        z = rounded((x + y).mean((2, 3)), 0.003, -20, -128, 127)
        return F.linear(z, self.weight(self.head), self.head.bias)


def product(net, dtype, ratio):
    net, x = net.to(dtype), image().to(dtype).requires_grad_()
    net.ratio = ratio
    net(x)[0, TARGET].backward()
    return (x * x.grad)[0].detach().double().numpy()


def main():
    torch.set_num_threads(1)
    for seed in range(100):
        torch.manual_seed(seed)
        net = Net().eval().requires_grad_(False)
        single, double = product(net, torch.float32, False), product(net, torch.float64, False)
        if np.linalg.norm(single - double) <= 1e-6 * np.linalg.norm(double):
            break
    else:
        raise SystemExit("single precision rounds otherwise in all nets")
    net.ratio = False
    torch.onnx.export(net.float(), (image().float(),), sys.argv[1], dynamo=False, opset_version=17, input_names=["image"],
                      output_names=["logits"], dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}})
    m = onnx.load(sys.argv[1])
    for n in m.graph.node:  # where in Python it was written
        n.ClearField("doc_string")
    onnx.save(m, sys.argv[1])
    out = {"seed": seed, "logit": float(net.double()(image())[0, TARGET])}
    for name, ratio in {"{quantize: straight-through}": False, "{activation: ratio, quantize: straight-through}": True}.items():
        r = product(net, torch.float64, ratio)
        step = r.size // SAMPLES
        out[name] = {"sum": float(f"{r.sum():.8g}"), "norm": float(f"{np.linalg.norm(r):.8g}"), "step": step,
                     "values": [float(f"{v:.6g}") for v in r.ravel()[::step]]}
        print(name, r.sum(), np.linalg.norm(r), (r == 0).mean())
    with open(sys.argv[2], "w") as f:
        json.dump(out, f)
        f.write("\n")


if __name__ == "__main__":
    main()

"""Reference class activation maps, in double precision.

    python cams.py ROOT cams.json

ROOT is the project's folder, with the quickstart's nets. Made with grad-cam 1.5.7, torch
2.15.0 and numpy 2.4.6. Maps are those of a layer's size, before that code rectifies and
stretches them, but every third value of RefineCAM's; the image is a formula. Where that code
has no such method, it is written here as its paper has it, one pass at a time: ReciproCAM
(Byun and Lee, arXiv:2209.14074 and 2310.02588).
"""
import json
import sys
from pathlib import Path

import numpy as np
import pytorch_grad_cam as pgc
import torch
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from pytorch_grad_cam.utils.svd_on_activations import get_2d_projection_with_sign_correction

ROOT = Path(sys.argv[1]).resolve()
sys.path.append(str(ROOT / "experiments/quickstart"))
import nets  # noqa: E402
import train  # noqa: E402

torch.set_default_dtype(torch.float64)
TARGET = 3
LAYERS = {
    "resnet": {0: "/blocks/blocks.0/relu2/Relu_output_0", 3: "/blocks/blocks.3/relu2/Relu_output_0"},
    "vit": {2: "/blocks/blocks.2/Add_1_output_0", 3: "/blocks/blocks.3/Add_1_output_0"},
}


def image(side):
    """The picture of paths.py."""
    i, j = np.mgrid[0:side, 0:side]
    x = np.stack([(i * (2 + c) + j * (3 + 2 * c) + i * j // 9) % 256 for c in range(3)])
    return torch.tensor(2 * x[None] / 255.0 - 1)


def grid(tokens):
    """Tokens [N,T,K] without the class token as channels [N,K,h,w]."""
    if tokens.ndim == 4:
        return tokens
    side = int((tokens.shape[1] - 1) ** 0.5)
    return tokens[:, 1:].reshape(tokens.shape[0], side, side, -1).permute(0, 3, 1, 2)


class Raw:
    """Keeps what a CAM makes at the layer."""

    def get_cam_image(self, *args, **kwargs):
        self.raw = super().get_cam_image(*args, **kwargs)
        return self.raw


class SignedEigenCAM(pgc.EigenCAM):
    """EigenCAM with the rule for signs of that code's SegEigenCAM."""

    def get_cam_image(self, input_tensor, target_layer, target_category, activations, grads, eigen_smooth):
        return get_2d_projection_with_sign_correction(activations)


class UncentredEigenCAM(pgc.EigenCAM):
    """EigenCAM as its paper has it, with the same rule."""

    def get_cam_image(self, input_tensor, target_layer, target_category, activations, grads, eigen_smooth):
        a = activations[0].reshape(activations.shape[1], -1).T
        map = a @ np.linalg.svd(a, full_matrices=False)[2][0]
        return (map if map.max() >= -map.min() else -map).reshape(activations.shape[:1] + activations.shape[2:])


BASES = {"grad-cam-plus-plus": pgc.GradCAMPlusPlus, "layer-cam": pgc.LayerCAM}
METHODS = {"xgrad-cam": pgc.XGradCAM, "grad-cam-elementwise": pgc.GradCAMElementWise,
           "eigen-cam": UncentredEigenCAM, "eigen-cam official": SignedEigenCAM}


def at_layer(net, block, x):
    """The block's value as channels [K,h,w], and the logit's derivative there."""
    kept = []
    hook = block.register_forward_hook(lambda m, i, o: kept.append(o))
    logit = net(x)[0, TARGET]
    hook.remove()
    return grid(kept[0]).detach()[0], grid(torch.autograd.grad(logit, kept[0])[0])[0]


def condition(method, a, g):
    """By how much a relative error of the layer's values and derivatives is multiplied in the
    largest value of the map: the weights are quotients of sums with both signs."""

    def cancels(terms, sums):
        return terms.abs().sum((1, 2), keepdim=True) / sums.abs()

    total = a.sum((1, 2), keepdim=True)
    if method == "xgrad-cam":
        above = (g * a).sum((1, 2), keepdim=True)
        weight = above / (total + 1e-7)
        error = weight.abs() * (cancels(a, total) + cancels(g * a, above))
    else:  # Grad-CAM++
        below = 2 * g**2 + g**3 * total + 1e-6
        summand = g**2 / below * g.relu()
        weight = summand.sum((1, 2), keepdim=True)
        worst = (2 * g**2 + g.abs() ** 3 * a.abs().sum((1, 2), keepdim=True) + 1e-6) / below.abs()
        error = (summand.abs() * worst).sum((1, 2), keepdim=True)
    return ((error * a.abs()).sum(0).max() / (weight * a).sum(0).relu().max()).item()


def reciprocam(net, block, x, gaussian):
    """The logit with one cell of the block's output left, the class token apart."""
    kept = []
    hook = block.register_forward_hook(lambda m, i, o: kept.append(o))
    net(x)
    hook.remove()
    value = kept[0]
    height, width = grid(value).shape[2:]
    out = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            mask = torch.zeros(height, width)
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if 0 <= i + di < height and 0 <= j + dj < width:
                        weight = (2 - abs(di)) * (2 - abs(dj)) / 16 if gaussian else float(di == dj == 0)
                        mask[i + di, j + dj] = weight
            if value.ndim == 4:
                left = value * mask
            else:
                left = value * torch.cat([torch.ones(1), mask.reshape(-1)])[None, :, None]
            hook = block.register_forward_hook(lambda m, i, o: left)
            out[i, j] = net(x)[0, TARGET]
            hook.remove()
    return out


def main():
    out = {}

    def keep(key, values):
        out[key] = [float(f"{v:.7g}") for v in np.asarray(values).ravel()]
        print(key, len(out[key]), flush=True)

    for name, layers in LAYERS.items():
        net = nets.NETS[name]()
        train.go_on(net, ROOT / f"experiments/quickstart/{name}.onnx")
        net = net.double().eval()
        for block, layer in layers.items():
            for method, of in METHODS.items():
                cam = type("Kept", (Raw, of), {})(net, [net.blocks[block]], reshape_transform=grid)
                cam(image(64), [ClassifierOutputTarget(TARGET)])
                keep(f"{name} {layer} {method}", cam.raw)
        blocks = [net.blocks[k] for k in reversed(layers)]
        for base, of in BASES.items():
            cam = pgc.RefineCAM(net, blocks, reshape_transform=grid, base_method=of)
            keep(f"{name} {list(layers.values())[1]} refine-cam {base}",
                 cam(image(64), [ClassifierOutputTarget(TARGET)])[0][::3, ::3])
        for block, layer in layers.items():
            for method in ("xgrad-cam", "grad-cam-plus-plus"):
                keep(f"{name} {layer} condition {method}",
                     [condition(method, *at_layer(net, net.blocks[block], image(64)))])
            with torch.no_grad():
                for mask in ("cell", "gaussian"):
                    keep(f"{name} {layer} recipro-cam {mask}",
                         reciprocam(net, net.blocks[block], image(64), mask == "gaussian"))
    with open(sys.argv[2], "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()

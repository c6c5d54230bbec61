"""Reference class activation maps of several layers, and those of torch-cam, in double precision.

    python joined.py ROOT joined.json

ROOT is the project's folder, with the quickstart's nets. Made with grad-cam 1.5.7, torch-cam
0.5.0, torch 2.15.0 and numpy 2.4.6. Maps are kept before the code stretches the joined one:
those of grad-cam are means, those of torch-cam the largest values, or products of RefineCAM.
Of maps of several layers every third value is kept; the image is a formula.
"""
import json
import sys

import numpy as np
import pytorch_grad_cam as pgc
import torch
import torchcam.methods as tc
from cams import LAYERS, ROOT, TARGET, grid, image, nets, train
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

MEANS = {"grad-cam": pgc.GradCAM, "layer-cam": pgc.LayerCAM, "hires-cam": pgc.HiResCAM,
         "grad-cam-elementwise": pgc.GradCAMElementWise, "xgrad-cam": pgc.XGradCAM,
         "ablation-cam": pgc.AblationCAM, "score-cam": pgc.ScoreCAM}


def mean(of, net, blocks):
    """The mean of the layers' maps, which that code stretches before it enlarges them."""

    class Kept(of):
        def aggregate_multi_layers(self, cam_per_target_layer):
            self.raw = np.maximum(np.concatenate(cam_per_target_layer, axis=1), 0).mean(axis=1)
            return super().aggregate_multi_layers(cam_per_target_layer)

    cam = Kept(net, blocks, reshape_transform=grid)
    cam.batch_size = 1
    cam(image(64), [ClassifierOutputTarget(TARGET)])
    return cam.raw[0]


def torchcam(of, net, blocks, **more):
    """The maps of torch-cam, one for each layer."""
    with of(net, blocks, input_shape=(3, 64, 64), **more) as cam:
        return cam, cam(TARGET, net(image(64)), normalized=False)


def main():
    out = {}

    def keep(key, values):
        out[key] = [float(f"{v:.7g}") for v in np.asarray(values).ravel()]
        print(key, len(out[key]), flush=True)

    for name in ("resnet", "vit"):
        net = nets.NETS[name]()
        train.go_on(net, ROOT / f"experiments/quickstart/{name}.onnx")
        net = net.double().eval()
        blocks, layers = [net.blocks[k] for k in LAYERS[name]], list(LAYERS[name].values())
        both = f"{name} {layers[0]}|{layers[1]}"
        for method, of in MEANS.items():
            # Between a transformer's last residual sum and the normalisation behind it, values times
            # derivatives sum to 0 at each token: HiResCAM there is what rounding leaves.
            if name == "vit" and method in ("ablation-cam", "score-cam", "hires-cam"):
                continue
            keep(f"{both} mean {method}", mean(of, net, blocks)[::3, ::3])
        if name == "vit":
            continue
        for method, of in {"grad-cam": tc.GradCAM, "xgrad-cam": tc.XGradCAM, "layer-cam": tc.LayerCAM}.items():
            for layer, map in zip(layers, torchcam(of, net, blocks)[1]):
                keep(f"{name} {layer} torch-cam {method}", map[0].detach())
        for method, of in {"grad-cam": tc.GradCAM, "xgrad-cam": tc.XGradCAM}.items():
            cam, maps = torchcam(of, net, blocks)
            maps = [cam._normalize(m.detach().clone()) for m in maps]
            keep(f"{both} max {method}", cam.fuse_cams(maps, (64, 64))[0][::3, ::3])
        for base in ("grad-cam", "layer-cam"):
            of = {"grad-cam": tc.GradCAM, "layer-cam": tc.LayerCAM}[base]
            with tc.RefineCAM(net, blocks, input_shape=(3, 64, 64), base_method=of) as cam:
                map = cam(TARGET, net(image(64)), normalized=False, target_shape=(64, 64))[0]
            keep(f"{both} product {base}", map[0].detach()[::3, ::3])
        for layer, map in zip(layers, torchcam(tc.FinerCAM, net, blocks)[1]):
            keep(f"{name} {layer} finer grad-cam", map[0].detach())
        # Its Grad-CAM++ divides a copy: weights are sums of cubes of what is positive.
        kept = []
        hook = blocks[1].register_forward_hook(lambda m, i, o: kept.append(o))
        logit = net(image(64))[0, TARGET]
        hook.remove()
        g, = torch.autograd.grad(logit, kept[0])
        cubes = (g.relu() ** 3).sum((2, 3), keepdim=True)
        map = torchcam(tc.GradCAMpp, net, [blocks[1]])[1][0]
        off = (map - (cubes * kept[0]).sum(1).relu()).abs().max() / map.max()
        print("torch-cam's GradCAMpp differs from the sum of cubes by", float(off.detach()))
        assert off < 1e-12
    with open(sys.argv[2], "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()

"""Attribution maps by captum, pytorch-grad-cam, PAIR's saliency and Zennit."""

import copy
import operator

import cv2
import numpy as np
import torch
from torch import nn

CNNS = ("vgg", "vgg-bn", "resnet")
ALL = CNNS + ("vit",)


FINAL = {"vgg": 11, "vgg-bn": 16}


def final(name, net):
    """The module whose output is runexp's layer final, the last one with places."""
    return net.blocks[3].relu2 if name == "resnet" else net[FINAL[name]]


class Sequence(nn.Module):
    """A net of nn.Sequential whose Flatten is a function: captum's LRP has no rule for the module."""

    def __init__(self, net):
        super().__init__()
        self.parts = nn.ModuleList(m for m in net if not isinstance(m, nn.Flatten))

    def forward(self, x):
        for m in self.parts:
            x = m(torch.flatten(x, 1) if isinstance(m, nn.Linear) else x)
        return x


def compare(w, package, call, method, theirs, nets=ALL, reason="", how="", same=None, peers=None, within=1e-5):
    """Compares maps[method] with theirs(net, name, x, targets) for each net. same is another id of method, peers
    another function of theirs. Theirs is computed in double precision, and again in single to tell what that changes."""
    def mine(m):
        return [w.ours("maps", "maps", method=m, model=n) for n in nets]

    def other(f, dtype=torch.float64):
        return [f(copy.deepcopy(w.nets[n]).to(dtype), n, w.x.to(dtype).clone(), w.targets[n]) for n in nets]

    first = other(theirs)
    second = None
    if same or peers:
        second = (mine(same or method), other(peers) if peers else first)
    w.c.add("map", package, call, mine(method), first, reason, how, second, within,
            other(peers or theirs, torch.float32))


def each(f):
    """Calls f image by image."""
    return lambda net, name, x, t: np.concatenate(
        [f(net, name, x[i:i + 1], t[i:i + 1]) for i in range(len(x))])


def captum(w):
    from captum import attr
    from captum.attr._utils.lrp_rules import Alpha1_Beta0_Rule
    from captum.attr._utils.custom_modules import Addition_Module

    def plain(cls, **kw):
        return lambda net, name, x, t: cls(net).attribute(x, target=t, **kw).detach().numpy()

    def at_layer(cls, **kw):
        return lambda net, name, x, t: cls(net, final(name, net)).attribute(x, target=t, **kw).detach().numpy()

    def run(call, method, theirs, **kw):
        compare(w, "captum", call, method, theirs, **kw)

    run("Saliency", "saliency", plain(attr.Saliency))
    run("Saliency(abs=False)", "gradient", plain(attr.Saliency, abs=False))
    run("InputXGradient", "input-x-gradient", plain(attr.InputXGradient))
    run("IntegratedGradients", "integrated-gradients", plain(attr.IntegratedGradients))
    run("IntegratedGradients(method=riemann_trapezoid)", "ig-trapezoid",
        plain(attr.IntegratedGradients, method="riemann_trapezoid"), nets=("vgg", "resnet"),
        reason="captum's weights sum to (n−1)/n: the ends count half of 1/n each",
        how="`rule: captum-trapezoid`", same="ig-captum-trapezoid")
    run("DeepLift", "deeplift", each(plain(attr.DeepLift)), nets=CNNS,
        reason="behind a ReLU captum's rule for MaxPool2d takes no part, its plain derivative does",
        how="`variant: official`", same="deeplift-captum")
    run("GuidedBackprop", "guided-backprop", plain(attr.GuidedBackprop), nets=CNNS)
    run("Deconvolution", "deconvolution", plain(attr.Deconvolution), nets=CNNS)
    window = dict(sliding_window_shapes=(3, 8, 8), strides=(3, 4, 4), perturbations_per_eval=32)
    run("Occlusion(sliding_window_shapes=(3,8,8), strides=(3,4,4))", "occlusion",
        lambda net, name, x, t: plain(attr.Occlusion, **window)(net, name, x, t)[:, 0])
    mask = torch.arange(64).reshape(1, 1, 8, 8).repeat_interleave(8, 2).repeat_interleave(8, 3)
    run("FeatureAblation(feature_mask=8×8 squares)", "occlusion-grid",
        lambda net, name, x, t: plain(attr.FeatureAblation, feature_mask=mask, perturbations_per_eval=32)(net, name, x, t)[:, 0])
    run("LayerGradCam", "grad-cam", lambda net, name, x, t: attr.LayerAttribution.interpolate(
        attr.LayerGradCam(net, final(name, net)).attribute(x, target=t), (64, 64), "bilinear").detach().numpy()[:, 0],
        nets=CNNS, reason="captum keeps negative values, and leaves enlarging to the caller (here bilinear)",
        how="`relu: false, size: layer`", same="grad-cam-captum",
        peers=lambda net, name, x, t: at_layer(attr.LayerGradCam)(net, name, x, t)[:, 0])
    run("GuidedGradCam", "guided-grad-cam", at_layer(attr.GuidedGradCam), nets=CNNS)
    run("LayerGradientXActivation", "layer-ixg", at_layer(attr.LayerGradientXActivation), nets=CNNS)

    def behind(net, name, x, t):
        """IntegratedGradients of the net behind the layer, from zeros there."""
        with torch.no_grad():
            at = (net[:FINAL[name] + 1] if name != "resnet" else nn.Sequential(net.stem, net.blocks))(x)
        rest = net[FINAL[name] + 1:] if name != "resnet" else nn.Sequential(net.pool, nn.Flatten(), net.head)
        return attr.IntegratedGradients(rest).attribute(at, target=t).detach().numpy()
    run("LayerIntegratedGradients", "layer-ig", at_layer(attr.LayerIntegratedGradients), nets=CNNS,
        reason="captum begins with the layer's value for an input of zeros, we with zeros there",
        how="their IntegratedGradients of the net behind the layer", peers=behind)
    run("LayerDeepLift", "layer-deeplift", each(at_layer(attr.LayerDeepLift)), nets=CNNS)

    class Block(nn.Module):
        """A residual block without an empty nn.Sequential, for which captum has no rule; its sum is a module or +."""

        def __init__(self, block, sum):
            super().__init__()
            self.main = nn.Sequential(block.conv1, block.bn1, block.relu1, block.conv2, block.bn2)
            self.shortcut = block.shortcut if len(block.shortcut) else None
            self.sum, self.relu = sum, block.relu2

        def forward(self, x):
            return self.relu(self.sum(self.main(x), x if self.shortcut is None else self.shortcut(x)))

    def lrp(rule=None, sum=lambda: operator.add):
        def f(net, name, x, t):
            if name == "resnet":
                net.blocks = nn.Sequential(*[Block(b, sum()) for b in net.blocks])
            else:
                net = Sequence(net)
            for m in net.modules():
                if rule and isinstance(m, (nn.Conv2d, nn.Linear)):
                    m.rule = rule()
            return attr.LRP(net).attribute(x, target=t).detach().numpy()
        return f

    run("LRP", "lrp", lrp(), nets=("vgg", "vgg-bn"),
        reason="captum's ε is 1e-9, for pools too, and BatchNorm2d a layer of its own",
        how="`epsilon: 1e-9, stabiliser: 1e-9, norm: apart`", same="lrp-captum", within=1e-4)
    run("LRP, of the residual net", "lrp-captum", lrp(), nets=("resnet",),
        reason="captum passes all relevance on to both summands of `+`",
        how="theirs with the sums as `Addition_Module`", peers=lrp(sum=Addition_Module), within=1e-4)
    run("LRP, Alpha1_Beta0_Rule", "z-plus", lrp(Alpha1_Beta0_Rule), nets=("vgg", "vgg-bn"),
        reason="captum clamps weights alone, and leaves the whole bias its share",
        how="`variant: captum, stabiliser: 1e-9, norm: apart`", same="z-plus-captum", within=1e-4)


def grad_cam(w):
    import pytorch_grad_cam as pgc
    from pytorch_grad_cam import base_cam, score_cam
    from pytorch_grad_cam.utils.image import scale_cam_image
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    def theirs(cls):
        def f(net, name, x, t):
            with cls(net, [final(name, net)]) as cam:
                return cam(x, [ClassifierOutputTarget(int(k)) for k in t])
        return f

    def unscaled(cls):
        """The same without stretching each map to [0,1], before and after it is enlarged."""
        def f(net, name, x, t):
            old = base_cam.scale_cam_image
            base_cam.scale_cam_image = lambda cam, size=None: np.float32(
                [m if size is None else cv2.resize(np.float32(m), size) for m in cam])
            try:
                return theirs(cls)(net, name, x, t)
            finally:
                base_cam.scale_cam_image = old
        return f

    stretched = "each map is stretched to [0,1], before and after it is enlarged"
    without = "theirs with `scale_cam_image` only enlarging"
    for cls, method, same, more, how in (
            (pgc.GradCAM, "grad-cam", None, "", ""),
            (pgc.GradCAMPlusPlus, "grad-cam-plus-plus", "cam-plus-plus-pgc", "; 1e-6 is added to denominators",
             "; `variant: official-gildenblat`"),
            (pgc.HiResCAM, "hires-cam", None, "", ""),
            (pgc.LayerCAM, "layer-cam", None, "", ""),
            (pgc.ScoreCAM, "score-cam", "score-cam-pgc", "; channels are enlarged corner to corner",
             "; `variant: official-gildenblat`"),
            (pgc.AblationCAM, "ablation-cam", "ablation-cam-pgc",
             "; a channel is replaced by its layer's smallest value minus 1e7", "; `variant: official-gildenblat`")):
        compare(w, "grad-cam", cls.__name__, method, theirs(cls), nets=CNNS, reason=stretched + more,
                how=without + how, same=same, peers=unscaled(cls), within=1e-4)

    def guided(net, name, x, t):
        model = pgc.GuidedBackpropReLUModel(copy.deepcopy(net), "cpu")
        return model(x, target_category=int(t[0])).transpose(2, 0, 1)[None]
    compare(w, "grad-cam", "GuidedBackpropReLUModel", "guided-backprop", each(guided), nets=CNNS)


def pair(w):
    import saliency.core as core

    class Quantile:
        """NumPy without the parameter that newer ones have no longer, and saliency's GuidedIG passes."""
        def __getattr__(self, name):
            return getattr(np, name)

        def quantile(self, a, q, interpolation):
            return np.quantile(a, q, method=interpolation)
    core.guided_ig.np = Quantile()

    def model_of(net, target, probability=False):
        def call(x, call_model_args=None, expected_keys=None):
            x = torch.from_numpy(np.asarray(x)).to(next(net.parameters()).dtype).requires_grad_()
            y = net(x)
            y = (y.softmax(1) if probability else y)[:, target]
            if core.OUTPUT_LAYER_VALUES in expected_keys:
                return {core.OUTPUT_LAYER_VALUES: y.detach().numpy()}
            return {core.INPUT_OUTPUT_GRADIENTS: torch.autograd.grad(y.sum(), x)[0].numpy()}
        return call

    def mask(cls, probability=False, **kw):
        def f(net, name, x, t):
            return cls().GetMask(x[0].numpy(), model_of(net, int(t[0]), probability), **kw)[None]
        return each(f)

    compare(w, "saliency", "GradientSaliency", "gradient", mask(core.GradientSaliency))
    compare(w, "saliency", "IntegratedGradients", "integrated-gradients", mask(core.IntegratedGradients),
            reason="PAIR averages 25 derivatives from end to end, both ends included",
            how="`rule: linspace-mean, steps: 25`", same="ig-pair")
    compare(w, "saliency", "GuidedIG, of probabilities", "guided-ig", mask(core.GuidedIG, True), nets=("vgg",),
            reason="which values move first depends on the last digits of derivatives, step after step")

    def occlusion(mean):
        def f(net, name, x, t):
            def call(images, call_model_args=None, expected_keys=None):
                with torch.no_grad():
                    y = net(torch.from_numpy(images).permute(0, 3, 1, 2))
                return {core.OUTPUT_LAYER_VALUES: y[:, int(t[0])].numpy()}
            m = core.Occlusion().GetMask(x[0].permute(1, 2, 0).numpy(), call)[..., 0]
            n = np.minimum(np.minimum(np.arange(64) + 1, 15), 64 - np.arange(64))
            return (m / np.outer(n, n) if mean else m)[None]
        return each(f)
    compare(w, "saliency", "Occlusion, of logits", "occlusion-pair", occlusion(False), nets=("vgg",),
            reason="PAIR sums the falls over the windows that cover a pixel, we average",
            how="theirs divided by the number of these windows", peers=occlusion(True))


def zennit(w):
    from zennit.attribution import Gradient
    from zennit.canonizers import SequentialMergeBatchNorm
    from zennit.composites import EpsilonPlusFlat, LayerMapComposite
    from zennit.rules import AlphaBeta, Epsilon, Gamma, Norm, Pass, ZPlus
    from zennit.types import Activation, AvgPool, Convolution, Linear

    def relevance(composite, merged):
        def f(net, name, x, t):
            for m in net.modules():
                if merged and isinstance(m, nn.BatchNorm2d):
                    m.running_var += m.eps
                    m.eps = 0
            start = nn.functional.one_hot(t, 12).to(x.dtype)
            with Gradient(net, composite([SequentialMergeBatchNorm()])) as a:
                return a(x.requires_grad_(), start)[1].detach().numpy()
        return f

    def run(call, method, same, composite):
        compare(w, "zennit", call, method, relevance(composite, False), nets=("vgg", "vgg-bn"),
                reason="Zennit begins with 1, and once it has merged a BatchNorm2d, that still divides by √(1 + 1e-5)",
                how="`start: one-hot`; theirs with the ε of each BatchNorm2d added to its variance", same=same,
                peers=relevance(composite, True))

    def everywhere(rule):
        return lambda canonizers: LayerMapComposite(
            [(Activation, Pass()), (AvgPool, Norm()), (Convolution, rule()), (Linear, rule())], canonizers=canonizers)

    run("Epsilon", "lrp", "lrp-zennit", everywhere(Epsilon))
    run("ZPlus", "z-plus", "z-plus-zennit", everywhere(ZPlus))
    run("Gamma", "gamma", "gamma-zennit", everywhere(Gamma))
    run("AlphaBeta", "alpha-beta", "alpha-beta-zennit", everywhere(AlphaBeta))
    run("EpsilonPlusFlat", "composite", "composite-zennit", lambda c: EpsilonPlusFlat(canonizers=c))

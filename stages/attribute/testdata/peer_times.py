"""Times a peer on the nets of stages/internal/program/testdata/shapes.py, for the
benchmark of methods.

    python peer_times.py PEER SHAPES.py NET THREADS

PEER is captum, grad-cam (pytorch-grad-cam) or lxt. Its first line has the versions.
It reads lines "METHOD N", N being the steps, samples or the window's size that the
method asks for, and answers each with the seconds that one image took, at the batch
of 1, 8 and 32, or $BATCHES, that is fastest for the method (found when it is first
asked), and that batch; or with "none" and why the peer can't. The method "forward" is the bare forward
pass of the same net.
"""
import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import os
import sys
import time
import types
from pathlib import Path
from unittest import mock

try:
    import torch
except ImportError as e:
    sys.exit(f"peer_times.py: {e}")

BATCHES = [int(b) for b in os.environ.get("BATCHES", "1,8,32").split(",")]
SLOW = 20  # seconds; what takes as long for one image isn't tried in larger batches


def load(path):
    spec = importlib.util.spec_from_file_location("shapes", path)
    shapes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shapes)
    return shapes


class Captum:
    package = "captum"
    # Batches are of steps.
    single = ("integrated-gradients", "expected-gradients", "smoothgrad", "occlusion", "feature-ablation",
              "kernel-shap", "lime", "shapley-sampling")

    def __init__(self, shapes, name):
        from captum import attr
        self.attr = attr
        self.net = shapes.make(name)
        self.layer = self.net.layers[-2] if name.startswith("vit") else self.net[-4]

    def runs(self, method, n):
        """Returns what explains images at most `batch` at a time."""
        attr, net = self.attr, self.net
        whole = {
            "saliency": attr.Saliency, "input-x-gradient": attr.InputXGradient, "deeplift": attr.DeepLift,
            "guided-backprop": attr.GuidedBackprop, "deconvolution": attr.Deconvolution, "lrp-epsilon": attr.LRP,
        }
        at_layer = {"grad-cam": attr.LayerGradCam, "guided-grad-cam": attr.GuidedGradCam}
        if method in whole:
            return lambda x, batch: whole[method](net).attribute(x, target=0)
        if method in at_layer:
            return lambda x, batch: at_layer[method](net, self.layer).attribute(x, target=0)
        if method == "integrated-gradients":
            return lambda x, batch: attr.IntegratedGradients(net).attribute(
                x[:1], target=0, n_steps=n, internal_batch_size=batch)
        if method == "expected-gradients":  # all samples at once
            return lambda x, batch: attr.GradientShap(net).attribute(
                x[:1], torch.randn(8, 3, 224, 224), n_samples=n, target=0)
        if method == "smoothgrad":
            return lambda x, batch: attr.NoiseTunnel(attr.Saliency(net)).attribute(
                x[:1], nt_type="smoothgrad", nt_samples=n, nt_samples_batch_size=min(n, batch), target=0)
        if method == "occlusion":
            return lambda x, batch: attr.Occlusion(net).attribute(
                x[:1], target=0, sliding_window_shapes=(3, n, n), strides=(3, n, n), perturbations_per_eval=batch)
        return self.units(method, n)

    def units(self, method, n):
        """Returns what replaces 16 squares."""
        side = torch.arange(224) // 56
        given = {"target": 0, "feature_mask": side[:, None] * 4 + side}
        ways = {
            "feature-ablation": (self.attr.FeatureAblation, {}),
            "kernel-shap": (self.attr.KernelShap, {"n_samples": n}),
            "lime": (self.attr.Lime, {"n_samples": n}),
            "shapley-sampling": (self.attr.ShapleyValueSampling, {"n_samples": n}),
        }
        if method not in ways:
            return None
        way, more = ways[method]
        return lambda x, batch: way(self.net).attribute(
            x[:1].detach(), perturbations_per_eval=batch, **given, **more)


class GradCAM:
    """pytorch-grad-cam, at the last block as its authors advise. It differentiates with
    respect to every parameter that wants it, so that none does but the layer's last:
    its backward pass ends at the layer, as ours."""
    package = "grad-cam"
    single = ("score-cam", "ablation-cam")
    classes = {
        "ablation-cam": "AblationCAM", "eigen-cam": "EigenCAM", "full-grad": "FullGrad", "grad-cam": "GradCAM",
        "grad-cam-elementwise": "GradCAMElementWise", "grad-cam-plus-plus": "GradCAMPlusPlus",
        "hires-cam": "HiResCAM", "layer-cam": "LayerCAM", "score-cam": "ScoreCAM", "xgrad-cam": "XGradCAM",
    }

    def __init__(self, shapes, name):
        self.peer = importlib.import_module("pytorch_grad_cam")
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
        self.target = ClassifierOutputTarget(0)
        self.net = shapes.make(name)
        self.vit = name.startswith("vit")
        self.layer = self.net.layers[-1].norm1 if self.vit else self.net[-4]
        list(self.layer.parameters())[-1].requires_grad_()

    @staticmethod
    def planes(value):
        """The grid of the patches, without the class token."""
        side = int((value.shape[1] - 1) ** 0.5)
        return value[:, 1:].reshape(len(value), side, side, -1).permute(0, 3, 1, 2)

    def runs(self, method, n):
        if method not in self.classes:
            return None
        way, more = getattr(self.peer, self.classes[method]), {}
        if self.vit:
            more["reshape_transform"] = self.planes
        if method == "ablation-cam" and self.vit:
            from pytorch_grad_cam.ablation_layer import AblationLayerVit
            more["ablation_layer"] = AblationLayerVit()

        def run(x, batch):
            if method in self.single:
                x = x[:1]
            with way(self.net, [self.layer], **more) as cam, contextlib.redirect_stderr(io.StringIO()):
                cam.batch_size = batch
                cam(x.detach(), [self.target] * len(x))
        return run


class LXT:
    """LXT patches torchvision's vision transformer, which has the LayerNorm and GELU of
    this net; at queries, keys and values its rules stand where its own patches have them.
    The γ-rule is Zennit's, as in its example, with our default γ."""
    package = "lxt"
    single = ()

    def __init__(self, shapes, name):
        if not name.startswith("vit"):
            raise ValueError("LXT explains transformers")
        import lxt
        # Its list of language models doesn't load with every release of transformers, and isn't needed.
        models = types.ModuleType("lxt.efficient.models")
        models.__path__ = [str(Path(lxt.__path__[0]) / "efficient/models")]
        models.get_default_map = None
        sys.modules["lxt.efficient.models"] = models
        from lxt.efficient import monkey_patch, monkey_patch_zennit
        from lxt.efficient.models.vit_torch import cp_LRP
        from lxt.efficient.rules import divide_gradient, stop_gradient
        from torchvision.models import vision_transformer
        from zennit.composites import LayerMapComposite
        from zennit.rules import Gamma
        monkey_patch_zennit()
        self.net, self.functions = shapes.make(name), shapes.F
        self.patch = lambda: monkey_patch(vision_transformer, cp_LRP)
        self.composite = LayerMapComposite([(torch.nn.Conv2d, Gamma(0.25)), (torch.nn.Linear, Gamma(0.05))])
        product = self.functions.scaled_dot_product_attention
        self.attention = {
            "attn-lrp": lambda q, k, v: product(divide_gradient(q, 4), divide_gradient(k, 4), divide_gradient(v, 2)),
            "cp-lrp": lambda q, k, v: product(stop_gradient(q), stop_gradient(k), v),
        }

    def runs(self, method, n):
        if method not in self.attention:
            return None
        patched = torch.nn.LayerNorm, torch.nn.GELU, torch.nn.MultiheadAttention

        def run(x, batch):
            plain = [c.forward for c in patched]
            self.patch()
            try:
                with mock.patch.object(self.functions, "scaled_dot_product_attention", self.attention[method]), \
                        self.composite.context(self.net) as net:
                    x * torch.autograd.grad(net(x)[:, 0].sum(), x)[0]
            finally:
                for c, forward in zip(patched, plain):
                    c.forward = forward
        return run


PEERS = {"captum": Captum, "grad-cam": GradCAM, "lxt": LXT}


def main():
    kind = PEERS[sys.argv[1]]
    torch.set_num_threads(int(sys.argv[4]))
    try:
        peer = kind(load(sys.argv[2]), sys.argv[3])
    except (ImportError, ValueError) as e:
        sys.exit(f"peer_times.py: {e}")
    best = {}

    def forward(x, batch):
        with torch.inference_mode():
            peer.net(x)

    print(kind.package, importlib.metadata.version(kind.package) + ", PyTorch", torch.__version__, flush=True)
    for line in sys.stdin:
        method, n = line.split()
        try:
            run = forward if method == "forward" else peer.runs(method, int(n))
            if run is None:
                raise ValueError(f"it has no {method}")

            def seconds(batch):
                x = torch.randn(batch, 3, 224, 224)
                start = time.perf_counter()
                with contextlib.redirect_stdout(io.StringIO()):  # some say more than they are asked
                    run(x.requires_grad_(), batch)
                return (time.perf_counter() - start) / (1 if method in kind.single else batch)

            if line not in best:
                slow = seconds(1) > SLOW  # the first time takes longer
                best[line] = 1 if slow else min((seconds(b), b) for b in BATCHES)[1]
            print(seconds(best[line]), best[line], flush=True)
        except Exception as e:
            print("none", " ".join(str(e).split())[:200], flush=True)


main()

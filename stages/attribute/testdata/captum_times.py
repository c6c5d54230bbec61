"""Times captum on the nets of stages/internal/program/testdata/shapes.py, for the
benchmark of methods.

    python captum_times.py SHAPES.py NET THREADS

It reads lines "METHOD N", N being the steps, samples or the window's size that the
method asks for, and answers each with the seconds that one image took, at the batch
of 1, 8 and 32 that is fastest for the method (found when it is first asked), and that
batch; or with "none" and why captum can't.
"""
import importlib.util
import sys
import time

try:
    import torch
    from captum import attr
except ImportError as e:
    sys.exit(f"captum_times.py: {e}")

BATCHES = 1, 8, 32


def load(path):
    spec = importlib.util.spec_from_file_location("shapes", path)
    shapes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shapes)
    return shapes


def runs(net, layer, method, n):
    """Returns what explains images at most `batch` at a time."""
    if method == "saliency":
        return lambda x, batch: attr.Saliency(net).attribute(x, target=0)
    if method == "input-x-gradient":
        return lambda x, batch: attr.InputXGradient(net).attribute(x, target=0)
    if method == "guided-backprop":
        return lambda x, batch: attr.GuidedBackprop(net).attribute(x, target=0)
    if method == "deconvolution":
        return lambda x, batch: attr.Deconvolution(net).attribute(x, target=0)
    if method == "deeplift":
        return lambda x, batch: attr.DeepLift(net).attribute(x, target=0)
    if method == "lrp-epsilon":
        return lambda x, batch: attr.LRP(net).attribute(x, target=0)
    if method == "grad-cam":
        return lambda x, batch: attr.LayerGradCam(net, layer).attribute(x, target=0)
    if method == "guided-grad-cam":
        return lambda x, batch: attr.GuidedGradCam(net, layer).attribute(x, target=0)
    if method == "integrated-gradients":
        return lambda x, batch: attr.IntegratedGradients(net).attribute(x[:1], target=0, n_steps=n, internal_batch_size=batch)
    if method == "expected-gradients":  # all samples at once
        return lambda x, batch: attr.GradientShap(net).attribute(x[:1], torch.randn(8, 3, 224, 224), n_samples=n, target=0)
    if method == "smoothgrad":
        return lambda x, batch: attr.NoiseTunnel(attr.Saliency(net)).attribute(
            x[:1], nt_type="smoothgrad", nt_samples=n, nt_samples_batch_size=min(n, batch), target=0)
    if method == "occlusion":
        return lambda x, batch: attr.Occlusion(net).attribute(
            x[:1], target=0, sliding_window_shapes=(3, n, n), strides=(3, n, n), perturbations_per_eval=batch)
    side = torch.arange(224) // 56
    units = side[:, None] * 4 + side  # 16 squares
    if method == "feature-ablation":
        return lambda x, batch: attr.FeatureAblation(net).attribute(
            x[:1], target=0, feature_mask=units, perturbations_per_eval=batch)
    if method == "kernel-shap":
        return lambda x, batch: attr.KernelShap(net).attribute(
            x[:1], target=0, feature_mask=units, n_samples=n, perturbations_per_eval=batch)
    if method == "lime":
        return lambda x, batch: attr.Lime(net).attribute(
            x[:1], target=0, feature_mask=units, n_samples=n, perturbations_per_eval=batch)
    if method == "shapley-sampling":
        return lambda x, batch: attr.ShapleyValueSampling(net).attribute(
            x[:1], target=0, feature_mask=units, n_samples=n, perturbations_per_eval=batch)
    raise ValueError(f"it has no {method}")


# Batches are of steps.
SINGLE = ("integrated-gradients", "expected-gradients", "smoothgrad", "occlusion", "feature-ablation",
          "kernel-shap", "lime", "shapley-sampling")


def main():
    shapes, name = load(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(int(sys.argv[3]))
    net = shapes.make(name)
    layer = net.layers[-2] if name.startswith("vit") else net[-4]
    best = {}
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        method, n = line.split()
        try:
            run = runs(net, layer, method, int(n))

            def seconds(batch):
                x = torch.randn(batch, 3, 224, 224)
                start = time.perf_counter()
                run(x.requires_grad_(), batch)
                return (time.perf_counter() - start) / (1 if method in SINGLE else batch)

            if line not in best:
                seconds(1)  # the first time takes longer
                best[line] = min((seconds(b), b) for b in BATCHES)[1]
            print(seconds(best[line]), best[line], flush=True)
        except Exception as e:
            print("none", " ".join(str(e).split())[:200], flush=True)


main()

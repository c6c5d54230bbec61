"""Values of units by captum 0.9.0, shap 0.51.0 and lime 0.2.0.1, with the subsets that they drew.

    python subsets.py QUICKSTART > subsets.json

"net": of captum on the quickstart's vgg, run by onnxruntime, for an image of sines [3,64,64], a feature
mask of 16 squares, zeros behind them and the logit of class 2. "shown" has a string of 0 and 1 for
each subset that KernelShap drew after its two ends, 1 for a square that is shown; "orders" the
orders in which ShapleyValueSampling adds squares.

"games": functions of which units are shown, Σ_k tanh(Σ_j sin(1 + 7k + 3j)·m_j / √M), k < 5, in double
precision. "exact": shap's KernelExplainer on all subsets of 6 units, and captum's ShapleyValues. "kernel": shap's
on some subsets of 12, with the weights that it gave them. "lime": LimeImageExplainer on 10 segments
of 4 pixels each; its first subset shows all.
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import shap
import torch
from captum import attr
from lime.lime_image import LimeImageExplainer

SIDE, REGION = 64, 16


def image():
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    z = [.5 + .5 * np.sin(9 * x + 4 * y * (1 + c) + c) * np.cos(5 * y - 3 * c * x) for c in range(3)]
    return np.stack(z).astype(np.float32)


def bits(rows):
    return ["".join(str(int(v)) for v in r) for r in rows]


def net(folder):
    s = onnxruntime.InferenceSession(folder / "vgg.onnx")
    name = s.get_inputs()[0].name

    def f(x):
        out = [s.run(None, {name: r[None].numpy().astype(np.float32)})[0] for r in x]
        return torch.tensor(np.concatenate(out)).double()

    x = torch.tensor(image())[None]
    y, c = np.mgrid[:SIDE, :SIDE] // REGION
    mask = torch.tensor(y * (SIDE // REGION) + c)[None, None]
    units = [(mask == k)[0, 0].nonzero()[0].tolist() for k in range(int(mask.max()) + 1)]
    at = lambda a: [float(a[0, 0, r, c]) for r, c in units]

    drawn, draw = [], attr.KernelShap.kernel_shap_perturb_generator

    def recorded(self, *a, **k):
        for z in draw(self, *a, **k):
            drawn.append(z[0].tolist())
            yield z

    attr.KernelShap.kernel_shap_perturb_generator = recorded
    torch.manual_seed(1)
    kernel = attr.KernelShap(f).attribute(x, target=2, feature_mask=mask, n_samples=122)
    ablation = attr.FeatureAblation(f).attribute(x, target=2, feature_mask=mask)
    sampling = attr.ShapleyValueSampling(f)
    orders, permute = [], sampling.permutation_generator

    def remembered(*a):
        for p in permute(*a):
            orders.append(list(p))
            yield p

    sampling.permutation_generator = remembered
    sampled = sampling.attribute(x, target=2, feature_mask=mask, n_samples=5)
    return {"shown": bits(drawn[2:]), "kernel-shap": at(kernel), "feature-ablation": at(ablation),
            "orders": orders, "shapley-sampling": at(sampled)}


def game(m):
    m = np.asarray(m, float)
    j = m.shape[1]
    a = np.sin(1 + 7 * np.arange(5)[:, None] + 3 * np.arange(j)) / np.sqrt(j)
    return np.tanh(m @ a.T).sum(1)


def games():
    six = np.ones((1, 6))
    e = shap.KernelExplainer(game, np.zeros((1, 6)))
    exact = e.shap_values(six, l1_reg=False, silent=True)[0]
    captum = attr.ShapleyValues(lambda z: torch.tensor(game(z.numpy()))).attribute(torch.tensor(six), torch.zeros(1, 6).double())[0]
    np.random.seed(1)
    e = shap.KernelExplainer(game, np.zeros((1, 12)))
    some = e.shap_values(np.ones((1, 12)), nsamples=90, l1_reg=False, silent=True)[0]
    n = e.nsamplesAdded
    return {"exact": exact.tolist(), "captum": captum.tolist(), "kernel": {
        "shown": bits(e.maskMatrix[:n]), "weights": e.kernelWeights[:n].tolist(), "values": some.tolist()}}


def lime():
    segments = np.repeat(np.arange(10), 4).reshape(4, 10)
    photo = np.arange(120.).reshape(4, 10, 3) % 7 + 1
    mean = np.zeros_like(photo)
    for k in range(10):
        mean[segments == k] = photo[segments == k].mean(0)
    moved = np.abs(photo - mean).sum(-1)

    def f(images):
        m = [[np.allclose(z[(segments == k) & (moved > 0)], photo[(segments == k) & (moved > 0)]) for k in range(10)]
             for z in images]
        p = game(m)
        return np.stack([1 - p, p], 1)

    out = []
    for features in 100000, 8, 4:
        e = LimeImageExplainer(random_state=3)
        kept = []
        labels = e.data_labels

        def recorded(*a, **k):
            kept.append(labels(*a, **k))
            return kept[-1]

        e.data_labels = recorded
        x = e.explain_instance(photo, f, labels=(1,), top_labels=None, num_features=features, num_samples=60,
                               segmentation_fn=lambda _: segments)
        values = np.zeros(10)
        for k, v in x.local_exp[1]:
            values[k] = v
        out.append({"features": features, "shown": bits(kept[0][0][1:]), "values": values.tolist(), "fit": float(x.score)})
    return out


print(json.dumps({"net": net(Path(sys.argv[1])), "games": games(), "lime": lime()}))

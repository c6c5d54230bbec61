"""Scores of altered inputs and models by Quantus 0.6.0, on the nets of nets.py: python models.py models.npz

For each net: "x" are the images and "xx" draws of them, "a" and "aa" their maps, gradient times input;
"ris", "ros" and "rrs" have what Quantus makes of each draw alone, NaN where the prediction changes. "random" are
the maps of the net with all layers random, as EfficientMPRT and MPRT have them, "off" those of another
class that RandomLogit draws; SmoothMPRT's are maps of each draw of noise. Similarities are Spearman's: Quantus
computes SSIM of maps in one row. SmoothMPRT ignores the method that it is given, and calls quantus.explain.
"""
import sys

import numpy as np
import quantus
import torch
from nets import QUIET, made, normalised
from quantus.helpers.model.pytorch_model import PyTorchModel
from quantus.functions.similarity_func import correlation_spearman

DRAWS = 4


def explain(model, inputs, targets, **_):
    x = torch.tensor(np.asarray(inputs, float), requires_grad=True)
    out = model(x)[torch.arange(len(x)), torch.tensor(np.asarray(targets))].sum()
    return (torch.autograd.grad(out, x)[0] * x).sum(1, keepdim=True).detach().numpy()


class Kept:
    """The method, which keeps its maps."""

    def __init__(self):
        self.maps = []

    def __call__(self, **k):
        self.maps.append(explain(**k))
        return self.maps[-1]


def main(out):
    nets, given = made()
    np.random.seed(0)
    draw, found = np.random.default_rng(8), {}
    for name, net in nets.items():
        x, targets = given[name + ".x"], given[name + ".targets"]
        scale = np.array([.02, .05, .02, .6])[:, None, None, None, None]  # the last one changes predictions
        xx = (x + scale * draw.standard_normal((DRAWS, *x.shape))).astype(np.float32)
        of = lambda v: normalised(v.astype(float), name)[0]
        a, aa = explain(net, of(x), targets), [explain(net, of(v), targets) for v in xx]
        found |= {f"{name}.xx": xx, f"{name}.a": a, f"{name}.aa": np.stack(aa)}
        more = {"nr_samples": 1, "disable_warnings": True, "return_nan_when_prediction_changes": True}
        for port, metric in {"ris": quantus.RelativeInputStability(**more),
                             "ros": quantus.RelativeOutputStability(**more),
                             "rrs": quantus.RelativeRepresentationStability(layer_names=["hidden"], **more)}.items():
            scores = []
            for v in xx:
                metric.perturb_func = lambda arr, indices: of(v).reshape(len(v), -1)
                scores.append(metric(model=net, x_batch=of(x), y_batch=targets, a_batch=a.copy(), explain_func=explain))
            found[f"{name}.{port}"] = np.array(scores)

        call = {"model": net, "x_batch": of(x), "y_batch": targets, "a_batch": a.copy(), "channel_first": True}
        kept = Kept()
        found[f"{name}.emprt"] = np.array(quantus.EfficientMPRT(
            disable_warnings=True, skip_layers=True)(explain_func=kept, **call))
        found[f"{name}.random"] = kept.maps[-1]
        kept = Kept()
        layers = quantus.MPRT(similarity_func=correlation_spearman, layer_order="bottom_up", **QUIET)(
            explain_func=kept, **call)
        found[f"{name}.mprt"] = np.array(list(layers.values())[-1])
        found[f"{name}.mprt.random"] = kept.maps[-1]
        kept, own = Kept(), quantus.explain
        quantus.explain = lambda m, x, y, **_: kept(model=m, inputs=x, targets=y)
        layers = quantus.SmoothMPRT(similarity_func=correlation_spearman, nr_samples=DRAWS, noise_magnitude=.1,
                                    skip_layers=True, **QUIET)(explain_func=kept, **{**call, "a_batch": None})
        quantus.explain = own
        found[f"{name}.smprt"] = np.array(list(layers.values())[-1])
        found |= {f"{name}.smprt.maps": np.stack(kept.maps[:DRAWS]),
                  f"{name}.smprt.random": np.stack(kept.maps[-DRAWS:])}
        kept = Kept()
        found[f"{name}.random-logit"] = np.array(quantus.RandomLogit(
            similarity_func=correlation_spearman, num_classes=net.out.out_features, **QUIET)(
            explain_func=kept, **call))
        found[f"{name}.off"] = kept.maps[-1]
    print({k: v for k, v in found.items() if v.size < 20})
    np.savez_compressed(out, **found)


main(*sys.argv[1:])

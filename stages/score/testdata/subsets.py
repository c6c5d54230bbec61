"""Writes subsets.json: what Quantus' and captum's metrics of replaced subsets make of maps of a small net.

Needs quantus 0.6.0, captum 0.9.0, torch and numpy < 2.4: python3 subsets.py > subsets.json

The net is two random layers on images of 1x4x4, of which two values are without effect. Each case has the
units of an image, the subsets of them that the library replaced, the responses that it got, and its score.
"""
import json
import warnings

import numpy as np
import quantus
import torch
from captum.metrics import infidelity
from importlib.metadata import version

warnings.simplefilter("ignore")
draw = np.random.default_rng(37)
SIDE, N = 4, 4
SIZE = SIDE * SIDE
W, V = draw.standard_normal((12, SIZE)) / 2, draw.standard_normal((3, 12))
W[:, [5, 11]] = 0
IMAGES = draw.random((N, 1, SIDE, SIDE))
MAPS = draw.standard_normal((N, 1, SIDE, SIDE))
MAPS[:, 0, 0, :2] = 0
MAPS[:2, 0, 1, 1] = 0  # of those without effect
CLASSES = np.array([0, 1, 2, 1])


class Net:
    """Quantus' four methods of a model; the responses to the explained classes are kept."""

    def __init__(self):
        self.seen = []

    def predict(self, x, **_):
        out = np.tanh(x.reshape(len(x), -1) @ W.T) @ V.T
        self.seen.append(out[np.arange(N), CLASSES])
        return out

    def shape_input(self, x, shape, **_):
        return np.asarray(x).reshape(-1, *shape[1:])

    def rows(self):
        """Returns the response to each image, and those to the rest."""
        seen = np.stack(self.seen, 1)
        return seen[:, 0], seen[:, 1:]


QUIET = {"disable_warnings": True, "display_progressbar": False}


def run(metric, maps=MAPS):
    net = Net()
    return net, metric.evaluate_batch(model=net, x_batch=IMAGES, y_batch=CLASSES, a_batch=maps)


def case(net, scores, units, subsets, **more):
    image, rows = net.rows()
    return {"scores": np.asarray(scores, float).tolist(), "units": np.asarray(units).tolist(),
            "subsets": subsets, "image": image.tolist(), "rows": rows.tolist(), **more}


def places(order, step=1):
    """Returns the unit of each value, where units are so many values that follow each other in an order."""
    units = np.zeros_like(order)
    for i, row in enumerate(order):
        units[i, row] = np.arange(SIZE) // step
    return units


def singles(count, repeats=1):
    return [[[k] for k in range(count) for _ in range(repeats)] for _ in range(N)]


def main():
    flat, own = MAPS.reshape(N, -1), np.tile(np.arange(SIZE), (N, 1))
    out = {}

    chosen, choice = [], np.random.choice
    np.random.seed(0)
    np.random.choice = lambda *a, **k: chosen.append(choice(*a, **k)) or chosen[-1]
    runs = 12
    net, scores = run(quantus.FaithfulnessCorrelation(nr_runs=runs, subset_size=5, **QUIET))
    np.random.choice = choice
    subsets = [[chosen[r * N + i].tolist() for r in range(runs)] for i in range(N)]
    out["faithfulness correlation"] = case(net, scores, own, subsets)

    for step in (1, 3):
        net, scores = run(quantus.FaithfulnessEstimate(features_in_step=step, **QUIET))
        count = -(-SIZE // step)
        out[f"faithfulness estimate {step}"] = case(net, scores, places(np.argsort(-flat, 1), step), singles(count))

    np.random.seed(1)
    net, scores = run(quantus.MonotonicityCorrelation(nr_samples=5, features_in_step=2, **QUIET), np.abs(MAPS))
    units = places(np.argsort(np.abs(flat), 1), 2)
    out["monotonicity correlation"] = case(net, scores, units, singles(SIZE // 2, 5), repeats=5)

    scaled = np.abs(MAPS) / np.abs(MAPS).max((1, 2, 3), keepdims=True)
    net, scores = run(quantus.NonSensitivity(**QUIET), scaled)
    out["non-sensitivity"] = case(net, scores, own, singles(SIZE))
    net, scores = run(quantus.NonSensitivity(abs=False, **QUIET), MAPS)
    out["non-sensitivity, signed"] = case(net, scores, own, singles(SIZE))

    metric = quantus.SensitivityN(features_in_step=2, **QUIET)
    net, steps = run(metric)
    metric.evaluation_scores = steps
    metric.custom_postprocess(x_batch=IMAGES)
    units = places(np.argsort(-flat, 1), 2)
    prefixes = [[list(range(k + 1)) for k in range(SIZE // 2)]] * N
    out["sensitivity-n"] = case(net, metric.evaluation_scores, units, prefixes)

    blocks = np.arange(SIZE).reshape(SIDE, SIDE)
    units = np.tile((blocks // SIDE // 2 * 2 + blocks % SIDE // 2).ravel(), (N, 1))
    black = (IMAGES - IMAGES.min((1, 2, 3), keepdims=True)).reshape(N, -1).tolist()
    net, scores = run(quantus.Infidelity(perturb_patch_sizes=[2], n_perturb_samples=2, **QUIET))
    net.seen = net.seen[:5]  # the second sample is the first again
    prefixes = [[list(range(k + 1)) for k in range(4)]] * N
    out["infidelity"] = case(net, scores, units, prefixes, differences=black)

    x, a = torch.tensor(IMAGES), torch.tensor(MAPS)
    w, v, count = torch.tensor(W), torch.tensor(V), 4
    masks = torch.tensor((units[0][None] == np.arange(count)[:, None]).reshape(count, 1, SIDE, SIDE))

    def forward(x):
        return torch.tanh(x.reshape(len(x), -1) @ w.T) @ v.T

    def squares(inputs):  # each image comes as many times as there are squares
        gone = (inputs - inputs.amin((1, 2, 3), keepdim=True)) * masks.repeat(N, 1, 1, 1)
        return gone, inputs - gone

    net = Net()
    net.predict(IMAGES)
    for mask in masks.numpy():
        net.predict(np.where(mask, IMAGES.min((1, 2, 3), keepdims=True), IMAGES))
    for normalize in (False, True):
        scores = infidelity(forward, squares, x, a, target=torch.tensor(CLASSES), n_perturb_samples=count,
                            normalize=normalize)
        name = "captum infidelity" + (", normalize" if normalize else "")
        out[name] = case(net, scores, units, singles(count), differences=black)

    noise = np.random.default_rng(41).standard_normal((N, 5, 1, SIDE, SIDE)) / 5
    lost = torch.tensor(-noise.reshape(-1, 1, SIDE, SIDE))
    net = Net()
    net.predict(IMAGES)
    for k in range(5):
        net.predict(IMAGES + noise[:, k])
    scores = infidelity(forward, lambda inputs: (lost, inputs - lost), x, a, target=torch.tensor(CLASSES),
                        n_perturb_samples=5)
    out["captum infidelity, noise"] = case(net, scores, np.zeros_like(own), singles(1, 5), repeats=5,
                                           differences=(-noise).reshape(N, -1).tolist())

    print(json.dumps({"quantus": version("quantus"), "captum": version("captum"), "numpy": np.__version__,
                      "maps": flat.tolist(), "cases": out}))


main()

"""Scores of two small nets by Quantus 0.6.0, captum 0.9.0 and, where no library has them, by numpy.

    python nets.py nets.npz                # the nets odd.onnx and row.onnx, images, maps and segments
    go test ../ -run TestPeersOnNets -args -drawn drawn.json
    python nets.py nets.npz drawn.json     # the scores, too

Needs quantus 0.6.0, captum 0.9.0, torch, scipy, onnx and numpy < 2.4. drawn.json has the subsets that
perturb/subset draws: nothing here draws any. odd.onnx takes images of 3x9x7, row.onnx grey ones of 1x11, made
of colours.
All is computed in double precision, of normalised images. A key ends in the library that made it; "numpy"
are the formulas of the papers, written down here, with scipy's pearsonr and spearmanr.
"""
import json
import sys
import warnings

import numpy as np
import onnx
import quantus
import torch
from captum.metrics import infidelity
from onnx import TensorProto, helper, numpy_helper
from scipy.stats import pearsonr, spearmanr

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)
QUIET = {"disable_warnings": True, "display_progressbar": False, "abs": False, "normalise": False}
MEAN, STD = {"odd": [.4, .5, .6], "row": [.5]}, {"odd": [.2, .3, .25], "row": [.25]}

SHAPES = {"odd": (3, 9, 7), "row": (1, 1, 11)}


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.hidden = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Tanh()
        self.out = torch.nn.Linear(4 * 9 * 7, 3)

    def forward(self, x):
        return self.out(self.hidden(self.conv(x)).flatten(1))


class Row(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.hidden = torch.nn.Conv2d(1, 5, (1, 3), padding=(0, 1)), torch.nn.ReLU()
        self.full, self.again, self.out = torch.nn.Linear(55, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.out(self.again(self.full(self.hidden(self.conv(x)).flatten(1))))


def weigh(net, draw):
    """Sets random weights of 10 bits after the point, which single precision has as they are."""
    for p in net.parameters():
        size = p.data[0].numel() if p.dim() > 1 else 4
        p.data = torch.tensor(np.round(draw.standard_normal(p.shape) / size ** .5 * 1024) / 1024)
    return net.eval()


def save(net, path, shape):
    nodes, weights, at = [], [], "image"
    layers = list(net.named_children())
    for name, layer in layers:
        if isinstance(layer, torch.nn.Linear) and at != "flat" and "flat" not in [n.output[0] for n in nodes]:
            nodes.append(helper.make_node("Flatten", [at], ["flat"]))
            at = "flat"
        for kind, p in layer.named_parameters():
            weights.append(numpy_helper.from_array(p.detach().numpy().astype(np.float32), f"{name}.{kind}"))
        own = [at, f"{name}.weight", f"{name}.bias"]
        if isinstance(layer, torch.nn.Conv2d):
            pads = list(layer.padding) * 2
            nodes.append(helper.make_node("Conv", own, [name], pads=pads, kernel_shape=list(layer.kernel_size)))
        elif isinstance(layer, torch.nn.Linear):
            nodes.append(helper.make_node("Gemm", own, [name], transB=1))
        else:
            nodes.append(helper.make_node({"Tanh": "Tanh", "ReLU": "Relu"}[type(layer).__name__], [at], [name]))
        at = name
    value = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *dims])
    graph = helper.make_graph(nodes, "net", [value("image", *shape)], [value("out", layer.out_features)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


class Wrapped:
    """Quantus' methods of a model."""

    def __init__(self, net):
        self.net = net

    def predict(self, x, **_):
        with torch.no_grad():
            return self.net(torch.tensor(np.asarray(x, float))).numpy()

    def shape_input(self, x, shape, **_):
        return np.asarray(x).reshape(-1, *shape[1:])


class Subsets:
    """The subsets of an image, as perturb/subset drew them, and the responses while they are replaced."""

    def __init__(self, net, image, target, a, units, rows, substrate, black):
        self.net, self.image, self.target, self.a = Wrapped(net), image, target, a.astype(float)
        self.units = np.array(units).reshape(image.shape[1:])
        self.rows = np.array([[int(v) for v in r] for r in rows], bool)
        self.other = np.zeros_like(image)
        if substrate == "black":
            self.other += black
        if substrate == "segment-mean":
            for k in range(self.units.max() + 1):
                at = self.units == k
                self.other[:, at] = image[:, at].mean(1, keepdims=True)
        self.masks = self.rows[:, self.units]  # of pixels
        f = lambda x: self.net.predict(x)[:, target]
        self.drops = f(image[None]) - f(np.where(self.masks[:, None], self.other, image))
        self.response = f(image[None])[0]
        self.sums = (self.a.sum(0) * self.masks).sum((1, 2))

    def correlation(self, of, some=slice(None)):
        x, y = self.sums[some], self.drops[some]
        return of(x, y)[0] if np.ptp(x) > 1e-12 and np.ptp(y) > 1e-12 else np.nan

    # Of Quantus.

    def quantus(self, metric, a, **more):
        """Returns a score of Quantus, which replaces values by those of the substrate."""
        flat = self.other.ravel()

        def replace(arr, indices, **_):
            out = arr.copy()
            np.put_along_axis(out, indices, np.take(flat, indices), 1)
            return out

        m = metric(perturb_func=replace, **{**QUIET, **more})
        x = self.image[None]
        return float(np.ravel(m.evaluate_batch(model=self.net, x_batch=x, y_batch=np.array([self.target]),
                                               a_batch=a[None]))[0])

    def faithfulness_correlation(self):
        """Each choice of values becomes a subset of ours: all channels of its pixels."""
        sets = [np.flatnonzero(np.broadcast_to(m, self.image.shape)) for m in self.masks]
        choice, left = np.random.choice, iter(sets)
        np.random.choice = lambda *_, **__: next(left)
        try:
            return self.quantus(quantus.FaithfulnessCorrelation, self.a.sum(0, keepdims=True), nr_runs=len(sets))
        finally:
            np.random.choice = choice

    def pixelwise(self, metric, of=lambda a: a, **more):
        """Each step is of a pixel, whose channels have the same relevance."""
        return self.quantus(metric, of(self.a.sum(0, keepdims=True)), features_in_step=len(self.image), **more)

    def non_sensitivity(self):
        return self.quantus(quantus.NonSensitivity, np.abs(self.a))  # of one channel

    # Of captum.

    def infidelity(self, normalize=False):
        count = len(self.masks)
        masks = torch.tensor(self.masks[:, None])
        lost = torch.tensor(self.image - self.other)

        def replace(inputs):
            gone = lost * masks
            return gone, inputs - gone

        return float(infidelity(self.net.net, replace, torch.tensor(self.image[None]), torch.tensor(self.a[None]),
                                target=self.target, n_perturb_samples=count, normalize=normalize,
                                max_examples_per_batch=count)[0])

    # Of the papers: Ancona et al. 2018, Bhatt et al. 2020, Hesse et al. 2024, Nguyen and Martinez 2020.

    def sensitivity_n(self, sizes):
        each = len(self.rows) // sizes
        return np.mean([self.correlation(pearsonr, slice(k * each, (k + 1) * each)) for k in range(sizes)])

    def insensitive(self):
        of = np.abs(self.a.sum(0))
        relevance = np.array([of[m].sum() for m in self.masks])
        return float(((relevance < 1e-5) != (np.abs(self.drops) < 1e-5)).sum())

    def scores(self, case):
        s = spearmanr
        rank = lambda: self.correlation(s)
        return {
            "fixed segments": {
                "faithfulness-correlation.scores quantus": self.faithfulness_correlation,
                "infidelity.scores captum": self.infidelity, "mu-fidelity.scores numpy": rank,
                "infidelity.scaled captum": lambda: self.infidelity(True)},
            "sizes of segments": {"sensitivity-n.scores numpy": lambda: self.sensitivity_n(3)},
            "bernoulli regions": {"mu-fidelity.scores numpy": rank},
            "single segments": {
                "single-deletion.scores numpy": rank, "infidelity.scores captum": self.infidelity,
                "infidelity.scaled captum": lambda: self.infidelity(True),
                "faithfulness-estimate.scores numpy": lambda: self.correlation(pearsonr),
                "non-sensitivity.count numpy": self.insensitive},
            "single pixels": {
                "faithfulness-estimate.scores quantus": lambda: self.pixelwise(quantus.FaithfulnessEstimate),
                "monotonicity-correlation.scores quantus": lambda: self.pixelwise(
                    quantus.MonotonicityCorrelation, np.abs, nr_samples=1),
                "single-deletion.scores numpy": rank, "non-sensitivity.count numpy": self.insensitive},
            "row fixed": {
                "faithfulness-correlation.scores quantus": self.faithfulness_correlation,
                "infidelity.scores captum": self.infidelity, "mu-fidelity.scores numpy": rank},
            "row single": {
                "faithfulness-estimate.scores quantus": lambda: self.pixelwise(quantus.FaithfulnessEstimate),
                "monotonicity-correlation.scores quantus": lambda: self.pixelwise(
                    quantus.MonotonicityCorrelation, np.abs, nr_samples=1),
                "single-deletion.scores numpy": rank, "non-sensitivity.count quantus": self.non_sensitivity},
        }[case]


def inputs(nets):
    draw = np.random.default_rng(31)
    odd, row = draw.random((3, 3, 9, 7)).astype(np.float32), draw.random((3, 3, 1, 11)).astype(np.float32)
    odd[1], odd[2] = odd[1, :1], .75  # a grey image and a flat one
    row[2] = .75
    y, x = np.mgrid[:9, :7]
    label = np.array([40, 3, 17, 5, 900, 8], np.uint32)
    segments = np.stack([label[(x * x + 3 * y) // 7 % 6], label[(x + y * y) // 5 % 5], label[(x > 2) * 1 + (y > x)]])
    maps = {"odd": draw.standard_normal((3, 3, 9, 7)).astype(np.float32),
            "row": np.round(2 * draw.standard_normal((3, 1, 1, 11))).astype(np.float32) / 2}  # with ties
    a = {"odd.x": odd, "row.x": row, "segments": segments, "odd.a": maps["odd"], "row.a": maps["row"],
         "odd.targets": np.array([0, 2, 1]), "row.targets": np.array([3, 0, 1])}
    nets["row"].conv.weight.data[:, :, 0, 0] = nets["row"].conv.weight.data[:, :, 0, 1] = 0
    nets["row"].full.weight.data.reshape(8, 5, 11)[:, :, 3] = 0  # value 4 is without effect
    return a


def made():
    draw = np.random.default_rng(3)
    nets = {"odd": weigh(Odd(), draw), "row": weigh(Row(), draw)}
    return nets, inputs(nets)


def normalised(x, name):
    of = lambda v: np.array(v)[:, None, None]
    if name == "row":
        x = np.tensordot(x, [.299, .587, .114], (1, 0))[:, None]  # the luma of Rec. 601
    return (x - of(MEAN[name])) / of(STD[name]), -of(MEAN[name]) / of(STD[name])


def main(out, drawn=None):
    nets, found = made()
    for name, net in nets.items():
        save(net, f"{name}.onnx", SHAPES[name])
    if drawn:
        for case, c in json.load(open(drawn)).items():
            name, scores = c["net"], {}
            x, black = normalised(found[name + ".x"].astype(float), name)
            for i in range(len(x)):
                s = Subsets(nets[name], x[i], int(found[name + ".targets"][i]), found[name + ".a"][i], c["units"][i],
                            c["rows"][i], c["substrate"], black)
                for key, of in s.scores(case).items():
                    scores.setdefault(key, []).append(of())
            for key, values in scores.items():
                found[f"{case}: {key}"] = np.array(values)
                print(case, key, values)
            found[case + ": units"] = np.array(c["units"], np.uint8)
            for i, rows in enumerate(c["rows"]):
                found[f"{case}: rows {i}"] = np.array([[int(v) for v in r] for r in rows], np.uint8)
    np.savez_compressed(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])

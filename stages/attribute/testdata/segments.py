"""Values of segments by captum 0.9.0 and lime 0.2.0.1, on the nets of ../../score/testdata/nets.py.

    go test ../ -run TestPeersOnSegments -args -drawn drawn.json
    python segments.py drawn.json > segments.json

drawn.json has the subsets that perturb/subset draws: captum's and lime's draws are replaced by them. The values
are those of an image's units, of irregular segments of 3x9x7 pixels or regions of 2 of a row of 11.
"""
import json
import sys
from importlib.metadata import version

import numpy as np
import torch
from captum import attr
from lime.lime_image import LimeImageExplainer

sys.path.insert(0, "../../score/testdata")
from nets import made, normalised  # noqa: E402


class Given(np.random.RandomState):
    """Draws the subsets that it is given."""

    def randint(self, low, high=None, size=None, **k):
        return self.rows.ravel() if size == self.rows.size else super().randint(low, high, size, **k)


def captum(method, net, x, target, units, shown, other):
    """Returns the values of the units, and puts the subsets in the place of the draws."""
    count = units.max() + 1
    more = {"target": target, "feature_mask": torch.tensor(units)[None, None], "baselines": torch.tensor(other)[None]}
    if method == "feature-ablation":
        m = attr.FeatureAblation(net)
    if method == "kernel-shap":
        m = attr.KernelShap(net)

        def perturb(*_, **__):
            yield torch.ones(1, count, dtype=torch.long)
            yield torch.zeros(1, count, dtype=torch.long)
            for row in shown:
                yield torch.tensor(row)[None]

        m.perturb_func = perturb
        more["n_samples"] = len(shown) + 2
    if method == "shapley-sampling":
        m = attr.ShapleyValueSampling(net)
        orders = []
        for order in np.split(shown, len(shown) // (count - 1)):
            steps = -np.diff(np.vstack([np.ones(count, int), order, np.zeros(count, int)]), axis=0)
            orders.append(steps.argmax(1)[::-1].tolist())  # captum adds the units
        m.permutation_generator = lambda *_: orders
        more["n_samples"] = len(orders)
    a = m.attribute(torch.tensor(x)[None], **more)[0, 0].numpy()
    return [float(a[units == k][0]) for k in range(count)]


def lime(net, name, image, target, units, shown, features):
    """Takes the image as it is: the mean over a segment is the same before and after normalisation."""
    def classify(images):
        x = normalised(np.moveaxis(images, -1, 1), name)[0]
        with torch.no_grad():
            return net(torch.tensor(x)).softmax(1).numpy()

    random = Given(1)
    random.rows = np.vstack([np.ones_like(shown[:1]), shown])
    e = LimeImageExplainer(random_state=random)
    x = e.explain_instance(np.moveaxis(image.astype(float), 0, -1), classify, labels=(target,), top_labels=None,
                           num_features=features, num_samples=len(random.rows), random_seed=1,
                           segmentation_fn=lambda _: units)
    values = np.zeros(units.max() + 1)
    for k, v in x.local_exp[target]:
        values[k] = v
    return values.tolist(), float(x.score)


def main(drawn):
    nets, given = made()
    cases = json.load(open(drawn))
    for key, c in cases.items():
        name, method = key.split(" ")
        c["values"], c["fits"] = [], []
        for i, image in enumerate(given[name + ".x"]):
            units = np.array(c["units"][i]).reshape(image.shape[1:])
            shown = 1 - np.array([[int(v) for v in r] for r in c["rows"][i]])
            target = int(given[name + ".targets"][i])
            x, black = normalised(image[None].astype(float), name)
            if method.startswith("lime"):
                values, fit = lime(nets[name], name, image, target, units, shown, 3 if method == "lime-3" else 100000)
                c["fits"].append(fit)
            else:
                values = captum(method, nets[name], x[0], target, units, shown, np.zeros_like(x[0]) + black)
            c["values"].append(values)
        del c["units"]
    print(json.dumps({"captum": version("captum"), "lime": version("lime"), "cases": cases}))


main(*sys.argv[1:])

"""Writes population.json: maps, predicted classes, and what Quantus' Sufficiency and Consistency make of them.

Needs quantus 0.6.0 and numpy < 2.4: python3 population.py > population.json
"""
import json
import warnings

import numpy as np
import quantus
from quantus.functions import discretise_func

warnings.simplefilter("ignore")
draw = np.random.default_rng(31)
quiet = dict(disable_warnings=True, display_progressbar=False)


class Net:
    """Predicts the class that the image's first pixel says."""

    def predict(self, x, **_):
        return np.eye(3)[np.asarray(x).reshape(len(x), -1)[:, 0].astype(int)]

    def shape_input(self, x, shape, **_):
        return np.asarray(x)


def score(metric, maps, classes):
    x = np.zeros(maps.shape)
    x[:, 0, 0, 0] = classes
    batch = dict(x_batch=x, a_batch=maps.copy())
    batch.update(metric.custom_batch_preprocess(model=Net(), **batch))
    return [float(v) if np.isfinite(v) else None for v in metric.evaluate_batch(**batch)]


def main():
    classes = draw.integers(3, size=14)
    maps = np.abs(draw.standard_normal((14, 1, 4, 5))) + (classes == 1)[:, None, None, None]
    maps /= maps.max((1, 2, 3), keepdims=True)
    unused = maps.copy()
    unused[:, 0, 3, 4] = 0  # in every map
    few = np.array([draw.permutation([1, 0.5, -0.25]) * draw.choice([1, 1, -1]) for _ in range(14)])
    few = few.reshape(14, 1, 1, 3)
    out = {"quantus": quantus.__version__, "classes": classes.tolist(), "maps": maps.reshape(14, -1).tolist(),
           "few": few.reshape(14, -1).tolist(), "sufficiency": {}, "consistency": {}}
    for threshold in [0.6, 0.75, 0.9, 1.0]:
        metric = quantus.Sufficiency(threshold=threshold, **quiet)
        out["sufficiency"][str(threshold)] = score(metric, maps, classes)
    out["unused"] = score(quantus.Sufficiency(threshold=1, **quiet), unused, classes)
    for name, function in [("signs", discretise_func.sign), ("first-signs", discretise_func.top_n_sign),
                           ("order", discretise_func.rank), ("rounded", discretise_func.floating_points)]:
        metric = quantus.Consistency(discretise_func=function, abs=False, **quiet)
        out["consistency"][name] = score(metric, few, classes)
    # By default: of magnitudes, the signs of the first five pixels.
    out["default"] = score(quantus.Consistency(**quiet), maps, classes)
    print(json.dumps(out))


main()

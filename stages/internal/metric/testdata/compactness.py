"""Writes compactness.npz: maps and masks with the numbers of other libraries.

Needs quantus 0.6.0, numpy < 2.4, scipy and scikit-learn: python3 compactness.py, which writes the versions

Quantus' MSTC and the authors' effective heat ratio are in no release. They are written here from their
definitions, with scipy and scikit-learn, and so are independent of the package.
"""
import sys
import warnings

import numpy as np
import quantus
import scipy
import scipy.stats
import sklearn
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial import ConvexHull, QhullError
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import kneighbors_graph

warnings.simplefilter("ignore")


def by_quantus(metric, maps, masks=None):
    """Scores of maps [n, h, w], all in one batch."""
    n, h, w = maps.shape
    if len(np.unique(maps)) == 1:
        return np.full(n, np.nan)  # an AssertionError there
    s = None if masks is None else masks.reshape(n, 1, h, w).astype(bool)
    out = metric(model=None, x_batch=np.ones((n, 1, h, w)), y_batch=np.zeros(n, int),
                 a_batch=maps.reshape(n, 1, h, w).copy(), s_batch=s, channel_first=True)
    return np.array(out, float)


def mst_c(a, percentile=80, k=20):
    a = np.abs(a)
    points = np.argwhere(a >= np.percentile(a, percentile)).astype(float)
    n, diagonal = len(points), np.hypot(*a.shape)
    if n < 2 or a.max() == 0:
        return np.nan, n, n
    root = diagonal
    try:
        if n > 2:
            root = np.sqrt(ConvexHull(points).volume)
    except QhullError:
        pass  # on one line
    near = kneighbors_graph(points, min(k, n - 1), mode="distance")
    graph = near.maximum(near.T)
    length = minimum_spanning_tree(graph).sum()
    return 100 * diagonal / root * n / length, n, connected_components(graph, directed=False)[0]


def heat_ratio(a, mask, weighted, base=0.1):
    a = np.maximum(a, 0)
    a = a / a.max()
    reached = np.sort(a[a >= base])
    ratios = []
    # The authors take np.quantile(reached, np.linspace(0, 1, 11)), whose 0.30000000000000004 can be above a value
    # which is the quantile 0.3.
    for place in np.arange(11) * (len(reached) - 1) / 10:
        chosen = a >= min(np.interp(place, np.arange(len(reached)), reached), 0.99)
        by = a[chosen].sum() if weighted else chosen.sum()
        ratios.append(a[chosen & (mask > 0)].sum() / by)
    return scipy.integrate.trapezoid(ratios, dx=0.1)


def blob(h, w, y, x, r):
    yy, xx = np.mgrid[:h, :w]
    return np.exp(-((yy - y) ** 2 + (xx - x) ** 2) / (2 * r * r))


def cases():
    draw = np.random.default_rng(31)
    for h, w in [(7, 9), (16, 16), (1, 12), (24, 20), (40, 33)]:
        noise = draw.standard_normal((h, w))
        yield f"noise{h}x{w}", noise
        yield f"relu{h}x{w}", np.maximum(noise + 0.5, 0)
        yield f"sparse{h}x{w}", np.maximum(noise - 1, 0)
        yield f"ties{h}x{w}", np.round(noise * 2)
        yield f"blob{h}x{w}", blob(h, w, h / 3, w / 2, 3.0)
        two = blob(h, w, 1, 1, 1.5) + blob(h, w, h - 2, w - 2, 2.1)
        yield f"two{h}x{w}", two + 1e-3 * noise
    one = np.zeros((7, 9))
    one[3, 4] = 2.5
    yield "one", one
    yield "constant", np.full((7, 9), 0.25)


def main():
    print("quantus", quantus.__version__, "numpy", np.__version__, "scipy", scipy.__version__,
          "scikit-learn", sklearn.__version__, file=sys.stderr)
    draw = np.random.default_rng(7)
    out = {}
    for name, a in cases():
        a = a.astype(np.float32).astype(float)
        mask = np.zeros(a.shape, np.uint8)
        h, w = a.shape
        mask[: max(1, h // 2), w // 4: w // 4 + max(1, w // 3)] = 1
        if name.startswith("ties"):
            mask = (draw.random(a.shape) < 0.3).astype(np.uint8)
            mask[0, 0], mask[0, 1] = 1, 0
        one, of = a[None], mask[None]
        k = 5
        mst, points, components = mst_c(a)
        counts = np.histogram(a, bins=100)[0]
        size = dict(disable_warnings=True, display_progressbar=False)
        out[name + ".map"], out[name + ".mask"] = a.astype(np.float32), mask
        out[name + ".numbers"] = np.array([
            by_quantus(quantus.Sparseness(**size), one)[0],
            by_quantus(quantus.Complexity(**size), one)[0],
            by_quantus(quantus.EffectiveComplexity(**size), one)[0],
            scipy.stats.entropy(counts),
            mst, points, components,
            by_quantus(quantus.AUC(abs=False, **size), one, of)[0],
            roc_auc_score(mask.ravel(), a.ravel()),
            average_precision_score(mask.ravel(), a.ravel()),
            by_quantus(quantus.TopKIntersection(k=k, abs=False, **size), one, of)[0],
            by_quantus(quantus.TopKIntersection(k=k, abs=False, concept_influence=True, **size), one, of)[0],
            by_quantus(quantus.AttributionLocalisation(positive_attributions=True, abs=False, **size), one, of)[0],
            heat_ratio(a, mask, False), heat_ratio(a, mask, True),
        ])
    # The defects of Quantus that the tests name.
    size = dict(disable_warnings=True, display_progressbar=False)
    noise = np.random.default_rng(5).standard_normal((4, 8, 8)).astype(np.float32).astype(float)
    mask = np.zeros((4, 8, 8), np.uint8)
    mask[:, 2:4, 2:4] = 1
    out["defects.map"], out["defects.mask"] = noise.astype(np.float32), mask[0]
    weighted = quantus.AttributionLocalisation(weighted=True, positive_attributions=True, abs=False, **size)
    out["defects.weighted"] = by_quantus(weighted, noise, mask)
    uneven = noise * np.array([1, 1e-3, 1e-6, 1]).reshape(4, 1, 1)
    out["defects.effective"] = by_quantus(quantus.EffectiveComplexity(**size), uneven)
    with_zero = noise * np.array([1, 0, 1, 1]).reshape(4, 1, 1)
    out["defects.sparseness"] = by_quantus(quantus.Sparseness(**size), with_zero)
    out["defects.signed"] = by_quantus(quantus.Complexity(abs=False, **size), noise)
    # Two squares whose corners are as far from each other as from their own twentieth neighbours.
    draw = np.random.default_rng(0)
    draw.integers(4)
    near = np.zeros((22, 22))
    near[0:7, 0:7], near[9:16, 10:17] = draw.random((7, 7)) < 0.93, draw.random((7, 7)) < 0.93
    near[6, 6] = near[9, 10] = 1
    turned = [near, near[::-1], near[:, ::-1], near.T, near[::-1, ::-1]]
    out["mirror.map"] = near.astype(np.float32)
    out["mirror.mst"] = np.array([mst_c(a, 83)[0] for a in turned])
    np.savez_compressed("compactness.npz", **out)


main()

"""Writes samples.json: samples with what scipy, statsmodels and mpmath make of them.

Needs scipy 1.17 or later, statsmodels and mpmath: python3 samples.py > samples.json
"""
import json

import mpmath as mp
import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

mp.mp.dps = 30
rng = np.random.default_rng(3)


def studentized(q, k):
    """P(Q > q) of the range of k normal variables, to 20 digits."""
    f = lambda z: mp.npdf(z) * ((1 - mp.ncdf(z)) ** (k - 1) - (mp.ncdf(z + q) - mp.ncdf(z)) ** (k - 1))
    return k * mp.quad(f, mp.linspace(-12, 12, 25))


out = {"wilcoxon": [], "kendall": [], "concordance": [], "friedman": [], "nemenyi": [], "holm": [],
       "effect": [], "power": [], "needed": [], "counts": []}

samples = [rng.normal(0.3, 1, n).round(4) for n in (1, 2, 5, 12, 24, 50, 51, 200)]
samples += [np.round(rng.normal(0.2, 1, n), 1) for n in (6, 13, 14, 24, 50, 120)]  # ties and zeros
samples += [np.array([0.0, 0.0, 1.0, 2.0, 3.0]), np.array([1.0, 1.0, -1.0, 2.0]), np.array([0.5, -0.25] * 20)]
for x in samples:
    r = stats.wilcoxon(x, correction=False)
    out["wilcoxon"].append({"x": x.tolist(), "statistic": r.statistic, "p": r.pvalue})
    if len(x) > 2:
        out["effect"].append({"x": x.tolist(), "d": np.mean(x) / np.std(x, ddof=1)})

# Scores that are counts: in the unit of counts, where equal differences have equal bits.
counts = np.random.default_rng(4)
pairs = [([4, 1, 3, 1, 0, 4, 0, 7, 6, 6, 1, 3, 6, 0, 6, 6, 1, 0, 3, 7, 0, 6, 4, 3, 0, 6],
          [5, 0, 5, 0, 0, 7, 3, 7, 7, 5, 2, 3, 7, 3, 7, 5, 0, 0, 2, 5, 0, 7, 4, 6, 2, 6])]
pairs += [(counts.integers(0, 8, n).tolist(), counts.integers(0, 8, n).tolist()) for n in (5, 9, 13, 14, 30, 60)]
for a, b in pairs:
    r = stats.wilcoxon(np.subtract(a, b), correction=False)
    out["counts"].append({"a": a, "b": b, "statistic": r.statistic, "p": r.pvalue})

for n in (4, 7, 30):
    for digits in (4, 0):
        x, y = (np.round(rng.normal(size=n) * 2, digits) for _ in "xy")
        out["kendall"].append({"x": x.tolist(), "y": y.tolist(), "tau": stats.kendalltau(x, y).statistic})

for n, k, digits in ((3, 3, 4), (8, 4, 4), (24, 6, 0), (30, 10, 4), (5, 3, 0)):
    x = np.round(rng.normal(size=(n, k)) * 2 + np.arange(k) / 4, digits)
    r = stats.friedmanchisquare(*x.T)
    ranks = stats.rankdata(x, axis=1)
    # W by its definition: the spread of the rank sums over the largest possible, with Kendall's ties.
    ties = sum(c**3 - c for row in x for c in np.unique(row, return_counts=True)[1])
    sums = ranks.sum(axis=0)
    w = 12 * np.sum((sums - sums.mean()) ** 2) / (n**2 * (k**3 - k) - n * ties)
    out["friedman"].append({"x": x.tolist(), "rank": ranks.mean(axis=0).tolist(), "chi2": r.statistic,
                            "p": r.pvalue})
    out["concordance"].append({"x": x.tolist(), "w": w})

for k, n, alpha in ((2, 10, 0.05), (3, 8, 0.05), (6, 24, 0.1), (10, 30, 0.01), (20, 1000, 0.05), (64, 26, 0.05)):
    start = float(stats.studentized_range.ppf(1 - alpha, k, np.inf))
    q = mp.findroot(lambda q: studentized(q, k) - mp.mpf(str(alpha)), (start - 1e-3, start + 1e-3), solver="anderson")
    error = mp.sqrt(mp.mpf(k * (k + 1)) / (6 * n))
    difference = float(error)  # of mean ranks: one standard error
    out["nemenyi"].append({"k": k, "n": n, "alpha": alpha, "cd": float(q / mp.sqrt(2) * error),
                           "difference": difference, "p": float(studentized(mp.sqrt(2), k)),
                           "far": 6 * difference, "pfar": float(studentized(6 * mp.sqrt(2), k))})

for p in (rng.uniform(size=6) ** 3, np.array([0.01, 0.01, 0.04]), np.array([0.2]), np.array([0.9, 0.6, 0.5])):
    out["holm"].append({"p": p.tolist(), "corrected": multipletests(p, method="holm")[1].tolist()})

for effect, n, alpha in ((0.3, 2, 0.05), (0.3, 24, 0.05), (1, 8, 0.01), (0.1, 500, 0.05), (0, 30, 0.05),
                         (2.5, 4, 0.001)):
    t, shift = stats.t.ppf(1 - alpha / 2, n - 1), effect * np.sqrt(n)
    power = stats.nct.sf(t, n - 1, shift) + stats.nct.cdf(-t, n - 1, shift)
    out["power"].append({"effect": effect, "n": n, "alpha": alpha, "power": float(power)})

for effect, alpha in ((0.2, 0.05), (-0.5, 0.05), (0.8, 0.01), (0.05, 0.005)):
    pairs = TTestPower().solve_power(abs(effect), alpha=alpha, power=0.8)
    out["needed"].append({"effect": effect, "alpha": alpha,
                          "n": int(np.ceil(np.ceil(pairs) * np.pi / 3))})

print(json.dumps(out, separators=(",", ":")).replace("],\"", "],\n\"").replace("},{", "},\n{"))

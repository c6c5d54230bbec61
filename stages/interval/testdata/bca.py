"""Writes bca.json: samples with the intervals of their means by scipy.stats.bootstrap(method="BCa").

The resamples are those of the package: Go's PCG (PCG-DXSM, O'Neill 2014) with the seed 1, 2. scipy gets their
means as an earlier result with n_resamples=0, and the nominal level whose normal quantile is Student's times
sqrt(n/(n-1)). Needs scipy 1.10 or later: python3 bca.py > bca.json
"""
import json
from types import SimpleNamespace

import numpy as np
from scipy import stats


def pcg():
    mask, state = (1 << 128) - 1, 1 << 64 | 2
    while True:
        state = (state * 0x2360ED051FC65DA44385DF649FCCF645 + 0x5851F42D4C957F2D14057B7EF767814F) & mask
        hi, lo, m64 = state >> 64, state & (1 << 64) - 1, (1 << 64) - 1
        hi ^= hi >> 32
        hi = hi * 0xDA942042E4DD58B5 & m64
        hi ^= hi >> 48
        yield hi * (lo | 1) & m64


def indices(n, rows):
    source = pcg()
    for _ in range(rows):
        row = []
        while len(row) < n:
            bits = next(source)
            row += [(bits >> 32) * n >> 32, (bits & 0xFFFFFFFF) * n >> 32]
        yield row[:n]


rng = np.random.default_rng(7)
out = []
for x in (rng.normal(size=5), rng.normal(3, 2, 24), rng.exponential(size=25), rng.lognormal(size=60),
          -rng.beta(0.5, 4, 101), np.array([1.0, 2.5, 40.0])):
    x = np.round(x * 2**20) / 2**20  # sums without rounding: a resample with every value once ties the mean
    n = len(x)
    means = np.array([x[i].mean() for i in indices(n, 2000)])
    z = stats.t.ppf(0.975, n - 1) * np.sqrt(n / (n - 1))
    r = stats.bootstrap((x,), np.mean, n_resamples=0, method="BCa", confidence_level=1 - 2 * stats.norm.sf(z),
                        bootstrap_result=SimpleNamespace(bootstrap_distribution=means))
    out.append({"x": x.tolist(), "low": r.confidence_interval.low, "high": r.confidence_interval.high})
print(json.dumps(out, separators=(",", ":")).replace("},", "},\n"))

"""Reduces the official MAS and RISE numbers to what the tests of this package read.

usage: python reduce.py path/to/golden/mas_rise mas_rise.npz

Leaves out images and random baselines, which only the tests with networks need,
stacks the curves of a file into one array, and stores a map once for all its
step sizes. Numbers are unchanged.
"""

import glob
import os
import re
import sys

import numpy as np

CURVES = ["mas", "ap", "dr", "mr", "rise_raw"]
AREAS = ["mas_auc", "rise_norm_auc", "rise_raw_auc"]


def stack(z, prefix, names):
    rows = [z[prefix + n] if prefix + n in z else None for n in names]
    like = next(r for r in rows if r is not None) if any(r is not None for r in rows) else np.zeros(())
    return np.stack([np.full_like(like, np.nan) if r is None else r for r in rows])


def main(source, target):
    out = {}
    for path in sorted(glob.glob(os.path.join(source, "*.npz"))):
        name = os.path.basename(path)[:-4]
        z = np.load(path)
        if name.startswith("blur_kernel"):
            continue
        base = re.sub(r"_step\d+$", "", name)
        out[base + ".map"] = z["saliency"]
        if name.startswith("baselines"):
            for b in ["mean_R101", "mean_VIT", "rand_fixed"]:
                out[f"{name}.{b}.curves"] = np.stack([stack(z, f"{b}_{m}_", CURVES) for m in ("ins", "del")])
            continue
        out[base + ".order"] = z["order"].astype("<u2")
        out[f"{name}.curves"] = np.stack([stack(z, m + "_", CURVES) for m in ("ins", "del")])
        out[f"{name}.areas"] = np.stack([stack(z, m + "_", AREAS) for m in ("ins", "del")])
        out[f"{name}.step"] = z["step"]
    np.savez_compressed(target, **out)


main(*sys.argv[1:])

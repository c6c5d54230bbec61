"""Functions that the tests of stages/function call: some that work, and some that fail in their own way."""

import os
import time

import numpy as np

import helper
from runexp_xai.stage import maps, metric


@metric(version=3, direction="lower", unit="share", low=0, high=1)
def share(map, mask, power=2.0, absolute=True, name="x", k=1):
    """The share of the map on the mask."""
    print("a function may print")
    a = np.abs(map) if absolute else map
    a = a**power
    return (a * (mask == 1)).sum() / a.sum() if a.any() else float("nan")


@metric(direction="none")
def seen(map, image, label, target, segments):
    return map.sum() + 10 * image.max() + 100 * label + 1000 * target[0] - target[1] + segments.max()


@metric()
def draw(map, rng):
    return rng.random()


@maps()
def doubled(map, image):
    assert image.dtype == np.float32 and image.max() <= 1
    return helper.double(map)


@maps()
def flat(map):
    return map.sum(axis=0)


@metric(seconds=1)
def fails(map, how="no"):
    if how == "raise":
        return 1 / len(map[:0])
    if how == "crash":
        os._exit(3)
    if how == "hang":
        time.sleep(1000)
    if how == "array":
        return map
    if how == "text":
        return "much"
    if how == "exit":
        raise SystemExit(4)
    return 0.5


@maps(seconds=30)
def shape(map, how="short"):
    return map[:1] if how == "short" else np.broadcast_to(map[0, 0], (100000, 100000))


@metric()
def no_default(map, threshold):
    return 0


@metric()
def no_map(image):
    return 0


@metric(direction="up")
def direction(map):
    return 0


def unmarked(map):
    return 0

"""A metric of one's own, by NumPy alone: how far a map's relevance is from the object."""

import numpy as np

from runexp_xai.stage import metric


@metric(version=1, direction="lower", unit="of the diagonal", low=0, high=1)
def distance(map, mask, magnitude=True):
    """Distance between the centres of the relevance and of the object"""
    relevance = map if map.ndim == 2 else map.sum(axis=0)
    relevance = np.abs(relevance) if magnitude else np.maximum(relevance, 0)
    if not relevance.any() or not mask.any():
        return float("nan")  # there is no centre; the score is counted as undefined
    return np.linalg.norm(centre(relevance) - centre(mask > 0)) / np.hypot(*relevance.shape)


def centre(weights):
    """Returns the mean position of pixels, by their weights."""
    return np.array([np.average(index, weights=weights) for index in np.indices(weights.shape)])

"""A metric of Quantus, on maps that runexp computes. Tried with quantus 0.6.0."""

import quantus

from runexp_xai.stage import metric


@metric(version=1, direction="higher", low=0, high=1, packages=["quantus"])
def top_k(map, mask, k=300):
    """Quantus's TopKIntersection: the share of the k largest values that are on the object"""
    relevance = map if map.ndim == 2 else map.sum(axis=0)
    if relevance.min() == relevance.max() or not mask.any():
        return float("nan")  # a map without an order has no largest values
    # concept_influence=False and normalise=False: the paper's number, of the map as it is.
    score = quantus.TopKIntersection(
        k=k, abs=False, normalise=False, concept_influence=False, return_aggregate=False, disable_warnings=True
    )
    batch = relevance[None, None]
    return score(model=None, x_batch=batch, y_batch=None, a_batch=batch, s_batch=(mask > 0)[None, None])[0]

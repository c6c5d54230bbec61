"""captum's LIME, as a method. Tried with captum 0.9.0, torch 2.15.0 and onnxruntime 1.32.0."""

import captum.attr
import numpy as np
import torch

from runexp_xai.stage import attribute


@attribute(version=1, packages=["captum", "torch", "scikit-learn"])
def lime(image, segments, target, model, rng, samples=200):
    """captum's Lime: coefficients of segments in a lasso of the logits around the image, gray where a segment is out"""
    torch.set_num_threads(1)  # runexp runs a process for each core
    torch.manual_seed(int(rng.integers(2**31)))
    values = captum.attr.Lime(lambda x: torch.from_numpy(model.logits(x.numpy()))).attribute(
        torch.from_numpy(model.normalise(image[None])),
        target=target,
        feature_mask=torch.from_numpy(segments.astype(np.int64))[None, None],
        n_samples=samples,
        perturbations_per_eval=50,
    )
    return values[0, 0].numpy()

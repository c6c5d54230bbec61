"""Numbers of Quantus that its papers' definitions don't give, on three images, the net vgg and the map saliency."""

import numpy as np
import torch

import quantus as q

from peers_metrics import explainer, scored

NET, METHOD = "vgg", "saliency"
QUIET = dict(disable_warnings=True, display_progressbar=False)


def quantus(w):
    """Adds a line for each defect: the call, theirs, our cell and its numbers, the reason."""
    if not hasattr(np, "trapz"):
        np.trapz = np.trapezoid  # which newer NumPys have no longer, and Quantus calls
    net, x, t = w.nets[NET], w.x.numpy(), w.targets[NET].numpy()
    a = scored(w, NET, METHOD)
    masks = w.ours("images", "masks")[1][:, None].astype(bool)

    def call(metric, maps=a, images=slice(None), net=net, **more):
        """What a metric returns, or how it fails."""
        try:
            np.random.seed(0)
            scores = metric(model=net, x_batch=x[images].copy(), y_batch=t[images], a_batch=maps[images].copy(),
                            channel_first=True, device="cpu", **more)
        except Exception as e:  # noqa: BLE001: how it fails is the answer
            return "%s: %s" % (type(e).__name__, " ".join(str(e).split())[:100])
        return numbers(scores)

    def add(theirs, number, stage, reason, port=None):
        mine = cell = ""
        if stage:
            cell, values = w.ours(stage, port, method=METHOD, model=NET)
            mine = numbers(values)
        w.c.defects.append([theirs, number, cell, mine, reason])
        print("%-60s %-40s %s" % (theirs, number, mine), flush=True)

    large = dict(features_in_step=768, **QUIET)
    add("Monotonicity(features_in_step=768), of the map and of its negative",
        call(q.Monotonicity(abs=False, **large)) + "; " + call(q.Monotonicity(abs=False, **large), -a), "monotonicity",
        "the image begins as the baseline, and its values are replaced by the baseline again: no image differs from "
        "the first, and no response falls, whatever the map")
    add("IROF()", call(q.IROF(return_aggregate=False, **QUIET), masks), "irof",
        "images of three channels don't have the shape of their segments")
    add("PointingGame(weighted=True)", call(q.PointingGame(weighted=True, **QUIET), s_batch=masks), "pointing",
        "the share of the object, an array a batch, is assigned to booleans", port="scores")
    add("Infidelity(perturb_patch_sizes=[7])", call(q.Infidelity(perturb_patch_sizes=[7], n_perturb_samples=1, **QUIET)),
        "infidelity", "the padded image is reshaped from the unpadded one, unless patches divide the side")
    samples = dict(perturb_patch_sizes=[8], **QUIET)
    add("Infidelity(perturb_patch_sizes=[8]), of 1 sample and of 10",
        call(q.Infidelity(n_perturb_samples=1, **samples)) + "; " + call(q.Infidelity(n_perturb_samples=10, **samples)),
        "infidelity", "patches stay replaced when the next one is, and with a constant baseline all samples are one")
    stable = dict(explain_func=explainer(METHOD))
    for name, mine in (("RelativeInputStability", "ris"), ("RelativeOutputStability", "ros")):
        metric = getattr(q, name)(nr_samples=20, return_nan_when_prediction_changes=True, **QUIET)
        add(name + "(nr_samples=20)", call(metric, **stable), mine,
            "noise is from 0.02 to 0.2, never negative, and a single draw that changes the prediction makes the "
            "score NaN")
    add("Consistency()", call(q.Consistency(**QUIET)), "consistency",
        "a map's label is the signs of its first five pixels, and with abs=True all maps have one label: the score "
        "is the share of images of the class")
    add("SensitivityN(features_in_step=768), of three images and of two",
        call(q.SensitivityN(return_aggregate=False, **large)) + "; " +
        call(q.SensitivityN(return_aggregate=False, **large), images=slice(2)), "sensitivity-n",
        "correlates over the images of a batch, not over the subsets of an image: values that accumulate with the "
        "sums of single steps")
    add("AttributionLocalisation(weighted=True)", call(q.AttributionLocalisation(weighted=True, **QUIET), s_batch=masks),
        "weighted", "the share is divided by the number of values in all images but two")
    add("RegionPerturbation.score_direction", q.RegionPerturbation.score_direction.value, "",
        "the response's fall is larger where the most relevant regions go first: higher is better")
    add("Completeness()", call(q.Completeness(**QUIET)), "completeness",
        "compares two floating-point numbers by ==, of a map divided by its largest magnitude")
    shapes, same, kept = randomised(w)
    add("MPRT(), of vgg's %d layers and of vit" % shapes, same + kept, "",
        "each layer is drawn from one seed, so that layers of one shape have equal weights, and parameters outside "
        "layers with reset_parameters stay as trained")
    add("Sufficiency(), of three images and of two",
        call(q.Sufficiency(**QUIET)) + "; " + call(q.Sufficiency(**QUIET), images=slice(2)), "sufficiency",
        "a number of the batch, not of the image, whose threshold is a share of the batch's largest distance")


def randomised(w):
    """What MPRT makes of weights: how many layers vgg has, how many pairs of them have equal weights, and which
    parameters of vit stay."""
    from quantus.helpers.model.pytorch_model import PyTorchModel

    layers = [m for m in w.nets["vgg"].modules() if hasattr(m, "reset_parameters")]
    equal = 0
    fresh = list(PyTorchModel(w.nets["vgg"]).get_random_layer_generator(order="independent", seed=42))
    weights = []
    for (name, model) in fresh:
        module = dict(model.named_modules())[name]
        weights.append(module.weight.detach().numpy())
    for i, u in enumerate(weights):
        equal += sum(u.shape == v.shape and np.array_equal(u, v) for v in weights[:i])
    vit = w.nets["vit"]
    last = None
    for _, last in PyTorchModel(vit).get_random_layer_generator(order="top_down", seed=42):
        pass
    before, after = dict(vit.named_parameters()), dict(last.named_parameters())
    kept = [n for n in before if torch.equal(before[n], after[n])]
    return len(layers), "%d pairs of layers are equal; " % equal, "of vit stay %s" % ", ".join(kept)


def numbers(scores):
    """Scores as text, three digits each."""
    return ", ".join("NaN" if np.isnan(v) else "%.3g" % v for v in np.ravel(np.asarray(scores, np.float64)))

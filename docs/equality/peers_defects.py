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

    def call(metric, x=x, y=t, maps=a, **more):
        """What a metric returns, or how it fails."""
        try:
            np.random.seed(0)
            scores = metric(model=net, x_batch=x.copy(), y_batch=y, a_batch=maps.copy(), channel_first=True,
                            device="cpu", **more)
        except Exception as e:  # noqa: BLE001: how it fails is the answer
            return "%s: %s" % (type(e).__name__, " ".join(str(e).split())[:100])
        return numbers(scores[:3] if len(x) > 3 else scores)

    def crowd(metric, n=24, method=METHOD):
        """What a metric returns for the first three of n images."""
        pool = (torch.from_numpy(w.ours("pool", "images")[1][:n]).float() / 255 - 0.5) / 0.5
        with torch.no_grad():
            y = net(pool).argmax(1).numpy()
        maps = w.ours("pool-scored", "maps", method=method, model=NET)[1][:n, None].astype(np.float64)
        return call(metric, pool.numpy(), y, maps)

    def add(theirs, number, stage, reason, port=None, method=METHOD):
        mine = cell = ""
        if stage:
            cell, values = w.ours(stage, port, method=method, model=NET)
            mine = numbers(values[:3])
        w.c.defects.append([theirs, number, cell, mine, reason])
        print("%-60s %-40s %s" % (theirs, number, mine), flush=True)

    large = dict(features_in_step=256, **QUIET)
    add("Monotonicity(features_in_step=256), of the map and of the map upside down",
        call(q.Monotonicity(**large)) + "; " + call(q.Monotonicity(**large), maps=a[:, :, ::-1]), "monotonicity",
        "the image begins as the baseline, and its values are replaced by the baseline again: no image differs from "
        "the first, and no response falls, whatever the map", port="scores")
    add("IROF()", call(q.IROF(return_aggregate=False, **QUIET)), "irof",
        "images of three channels don't have the shape of their segments")
    add("PointingGame(weighted=True)", call(q.PointingGame(weighted=True, **QUIET), s_batch=masks), "pointing",
        "the share of the object, an array a batch, is assigned to booleans", port="scores")
    add("Infidelity(perturb_patch_sizes=[7])", call(q.Infidelity(perturb_patch_sizes=[7], n_perturb_samples=1, **QUIET)),
        "infidelity", "the padded image is reshaped from the unpadded one, unless patches divide the side", port="scores")
    samples = dict(perturb_patch_sizes=[8], **QUIET)
    add("Infidelity(perturb_patch_sizes=[8]), of 1 sample and of 10",
        call(q.Infidelity(n_perturb_samples=1, **samples)) + "; " + call(q.Infidelity(n_perturb_samples=10, **samples)),
        "infidelity", "patches stay replaced when the next one is, and with a constant baseline all samples are one",
        port="scores")
    stable = dict(explain_func=explainer(METHOD))
    for name, port in (("RelativeInputStability", "ris"), ("RelativeOutputStability", "ros")):
        metric = getattr(q, name)(nr_samples=20, **QUIET)
        add(name + "(nr_samples=20)", call(metric, **stable), "stability",
            "noise is from 0.02 to 0.2, never negative, and a single draw that changes the prediction makes the "
            "score NaN; ours are of four normal draws", port=port)
    signed = "integrated-gradients"
    add("Consistency(), of integrated-gradients, the first three of 24 images",
        crowd(q.Consistency(**QUIET), method=signed), "consistency",
        "a map's label is the signs of its first five pixels, and with abs=True all maps have one label: the score "
        "is the share of images of the class", port="scores", method=signed)
    add("SensitivityN(features_in_step=256), of three images and of two",
        call(q.SensitivityN(return_aggregate=False, **large)) + "; " +
        call(q.SensitivityN(return_aggregate=False, **large), x[:2], t[:2], a[:2]), "sensitivity-n",
        "correlates over the images of a batch, not over the subsets of an image: values that accumulate with the "
        "sums of single steps", port="scores")
    add("AttributionLocalisation(weighted=True)", call(q.AttributionLocalisation(weighted=True, **QUIET), s_batch=masks),
        "weighted", "the share is multiplied by the object's pixels and divided by the values of all images but two; the "
        "paper multiplies by the image's pixels and divides by the object's", port="scores")
    add("RegionPerturbation.score_direction", q.RegionPerturbation.score_direction.value, "",
        "the response's fall is larger where the most relevant regions go first: higher is better")
    a = w.ours("maps", "maps", method="integrated-gradients", model=NET)[1].astype(np.float64)
    add("Completeness(), of integrated-gradients, normalised and not",
        call(q.Completeness(**QUIET), maps=a) + "; " + call(q.Completeness(normalise=False, **QUIET), maps=a),
        "completeness",
        "compares two floating-point numbers by ==, by default of a map divided by its largest magnitude; ours is the "
        "relative error", method="integrated-gradients")
    equal, kept = randomised(w)
    add("MPRT(), the weights of resnet and of vit", equal + "; " + kept, "",
        "each layer is drawn from one seed, so that layers of one shape have equal weights, and parameters outside "
        "layers with reset_parameters stay as trained")
    add("Sufficiency(), the first three of 24 images and of 12",
        crowd(q.Sufficiency(**QUIET)) + "; " + crowd(q.Sufficiency(**QUIET), 12), "sufficiency",
        "a number of the batch, which is 0 where no other map is near, and for all where a pixel is the same in all "
        "maps; ours is of all images of the cell", port="scores")


def randomised(w):
    """What MPRT makes of weights: how many pairs of resnet's layers are equal, and which parameters of vit stay."""
    from quantus.helpers.model.pytorch_model import PyTorchModel

    def last(net):
        for _, model in PyTorchModel(net).get_random_layer_generator(order="top_down", seed=42):
            pass
        return model

    weights = [m.weight.detach() for m in last(w.nets["resnet"]).modules() if isinstance(m, torch.nn.Conv2d)]
    pairs = [torch.equal(u, v) for i, u in enumerate(weights) for v in weights[:i] if u.shape == v.shape]
    after = dict(last(w.nets["vit"]).named_parameters())
    kept = [n for n, p in w.nets["vit"].named_parameters() if torch.equal(p, after[n])]
    return ("%d of %d pairs of convolutions of one shape are equal" % (sum(pairs), len(pairs)),
            "as trained: " + ", ".join(kept))


def numbers(scores):
    """Scores as text, three digits each."""
    return ", ".join("NaN" if np.isnan(v) else "%.3g" % v for v in np.ravel(np.asarray(scores, np.float64)))

"""Scores of our maps by Quantus, pytorch-grad-cam's ROAD and PAIR's PIC."""

import numpy as np
import torch

CELLS = [(n, m) for n in ("vgg", "resnet") for m in ("saliency", "integrated-gradients", "grad-cam")]


def ours(w, stage, port=None, pick=lambda v: v):
    """The values of a stage for every net and map, each with its cell."""
    found = [w.ours(stage, port, method=m, model=n) for n, m in CELLS]
    return [(cell, pick(values)) for cell, values in found]


def theirs(w, f):
    """f(net, x, targets, maps) for every net and map; maps is [N, 1, H, W]."""
    return [np.asarray(f(w.nets[n], w.x.numpy(), w.targets[n].numpy(), scored(w, n, m))) for n, m in CELLS]


def scored(w, n, m, stage="scored"):
    return w.ours(stage, "maps", method=m, model=n)[1][:, None].astype(np.float64)


def explainer(method):
    """The method as a function of x and targets, with the channels of its map summed."""
    from captum import attr

    from peers_attribution import final

    def f(model, inputs, targets, **_):
        name = "resnet" if hasattr(model, "blocks") else "vgg"
        x, t = torch.as_tensor(np.asarray(inputs), dtype=torch.float32), torch.as_tensor(np.asarray(targets))
        if method == "grad-cam":
            a = attr.LayerGradCam(model, final(name, model)).attribute(x, target=t)
            a = torch.nn.functional.interpolate(a.relu(), (64, 64), mode="bilinear")
        else:
            a = {"saliency": attr.Saliency, "integrated-gradients": attr.IntegratedGradients}[method](model)
            a = a.attribute(x, target=t).sum(1, keepdim=True)
        return a.detach().numpy().astype(np.float64)
    return f


class Draws:
    """A perturbation that hands out our draws, one after the other."""

    def __init__(self, w):
        self.x = [w.ours("noisy", "images", draw=d)[1] for d in "abcd"]
        self.next = 0

    def __call__(self, arr, **_):
        x = (self.x[self.next % 4].astype(np.float64) - 0.5) / 0.5
        self.next += 1
        return x.reshape(arr.shape)


def quantus(w):
    import quantus as q

    np.trapz = np.trapezoid  # which newer NumPys have no longer, and Quantus calls

    def call(metric, **more):
        def f(net, x, t, a):
            return metric(model=net, x_batch=x, y_batch=t, a_batch=a.astype(np.float64), channel_first=True,
                          device="cpu", **{k: v(w) for k, v in more.items()})
        return f

    def add(name, mine, metric, reason="", how="", same=None, within=1e-5, **more):
        w.c.add("score", "quantus", name, mine, theirs(w, call(metric, **more)), reason, how, same, within)

    quiet = dict(disable_warnings=True, display_progressbar=False)
    masks = dict(s_batch=lambda w: w.ours("images", "masks")[1][:, None].astype(bool))

    # Quantus replaces values, of which a pixel has three; the number in a step must divide that of pixels.
    options = dict(features_in_step=256, perturb_baseline=0.0, **quiet)
    curves = theirs(w, lambda net, x, t, a: call(q.PixelFlipping(**options))(net, x, t, ordered(a)))
    flipping = "PixelFlipping(features_in_step=256, perturb_baseline=0.0)"
    thirds = [c[:, 2::3] for c in curves]
    w.c.add("score", "quantus", flipping + ", each third point", ours(w, "flipping", pick=after),
            [c[:, 2::3] for c in theirs(w, call(q.PixelFlipping(**options)))],
            "the order of equal pixels, such as Grad-CAM's zeros, is open with `argsort`; ours is `ties: index`",
            "theirs for maps of the pixels' ranks", (ours(w, "flipping", pick=after), thirds))
    start = [v[:, :1] for _, v in ours(w, "flipping", pick=probabilities)]
    add(flipping + ", its area", ours(w, "flipping-auc"), q.PixelFlipping(return_auc_per_sample=True, **options),
        "Quantus leaves the image itself out, has 3 values a pixel, and doesn't divide by the number of steps",
        "theirs of ranks, of the image and each third point, divided by 16",
        (ours(w, "flipping-auc"), [area_under(np.concatenate([s, c], 1)) for s, c in zip(start, thirds)]))

    whole = dict(patch_size=8, perturb_baseline=0.0, **quiet)
    add("Selectivity(patch_size=8, perturb_baseline=0.0)", ours(w, "regions", pick=after), q.Selectivity(**whole))
    region = q.RegionPerturbation(regions_evaluation=64, **whole)
    fall = ours(w, "regions", pick=lambda v: probabilities(v)[:, :1] - after(v))
    add("RegionPerturbation(patch_size=8, regions_evaluation=64), curve", fall, region)
    falls = theirs(w, call(region))
    w.c.add("score", "quantus", "RegionPerturbation, its mean", ours(w, "aopc"), [f.mean(1) for f in falls],
            "the paper's mean counts the image itself, whose fall is 0",
            "theirs times L/(L+1)", (ours(w, "aopc"), [f.mean(1) * 64 / 65 for f in falls]))

    positive = lambda net, x, t, a: call(q.RelevanceMassAccuracy(**quiet), **masks)(net, x, t, a.clip(0))  # noqa: E731
    add("RelevanceMassAccuracy", ours(w, "mass"), q.RelevanceMassAccuracy(**quiet),
        "Quantus divides signed sums, so that a score may be negative or above 1; we count positive relevance",
        "theirs for the positive part of the map", (ours(w, "mass"), theirs(w, positive)), **masks)
    add("RelevanceMassAccuracy(abs=True)", ours(w, "mass-magnitude"), q.RelevanceMassAccuracy(abs=True, **quiet),
        **masks)
    add("AttributionLocalisation", ours(w, "mass-magnitude"), q.AttributionLocalisation(**quiet), **masks)
    add("RelevanceRankAccuracy", ours(w, "rank", "scores"), q.RelevanceRankAccuracy(**quiet), **masks)
    add("PointingGame", ours(w, "pointing", "scores"), q.PointingGame(**quiet), **masks)

    def focus(stage):
        def f(net, name, method):
            a = scored(w, name, method, "mosaic-scored")
            m = w.ours("mosaics", "masks")[1][:, [0, 0, -1, -1], [0, -1, 0, -1]]
            return q.Focus(**quiet)(model=net, x_batch=w.ours("mosaics", "images")[1].astype(np.float32),
                                    y_batch=w.ours("mosaics", "targets")[1].ravel().astype(int), a_batch=a,
                                    custom_batch=[tuple(r) for r in m], channel_first=True, device="cpu")
        return [np.asarray(f(w.nets[n], n, m)) for n, m in CELLS]
    w.c.add("score", "quantus", "Focus", ours(w, "focus"), focus(None))

    # The draws are ours. Distances are of the model's inputs, which are twice those of pixel values.
    def robust(metric, batch=64):
        def f(net, x, t, a):
            m = metric(Draws(w))
            method = next(k for n, k in CELLS if w.nets[n] is net and np.array_equal(scored(w, n, k), a))
            return m(model=net, x_batch=x.astype(np.float64), y_batch=t, a_batch=a, channel_first=True, device="cpu",
                     batch_size=batch, explain_func=explainer(method))
        return theirs(w, f)

    largest = lambda d: q.MaxSensitivity(nr_samples=4, perturb_func=d, **quiet)  # noqa: E731
    w.c.add("score", "quantus", "MaxSensitivity, on our draws", ours(w, "sensitivity", "max"), robust(largest),
            within=1e-4)
    mean = lambda d: q.AvgSensitivity(nr_samples=4, perturb_func=d, **quiet)  # noqa: E731
    w.c.add("score", "quantus", "AvgSensitivity, on our draws", ours(w, "sensitivity", "average"), robust(mean),
            within=1e-4)
    lipschitz = lambda d: q.LocalLipschitzEstimate(nr_samples=4, perturb_func=d, **quiet)  # noqa: E731
    batches = robust(lipschitz)

    def alone(d):
        return q.LocalLipschitzEstimate(nr_samples=4, perturb_func=d, normalise_func=each_by_max, **quiet)
    w.c.add("score", "quantus", "LocalLipschitzEstimate, on our draws", ours(w, "lipschitz"), batches,
            "Quantus divides by the largest magnitude of the batch, and measures the model's inputs, not pixel values",
            "theirs with a `normalise_func` for each map, divided by the preset's deviation, 0.5",
            (ours(w, "lipschitz"), [v / 0.5 for v in robust(alone)]), within=1e-3)

    for name, port in (("RelativeInputStability", "ris"), ("RelativeOutputStability", "ros")):
        stable = lambda d, name=name: getattr(q, name)(nr_samples=4, perturb_func=d, **quiet)  # noqa: E731
        w.c.add("score", "quantus", name + ", on our draws, relative to ours", ones(ours(w, "stability", port)),
                shares(ours(w, "stability", port), robust(stable)), within=1e-3, keep=False)

    def similar(f):
        return [np.array([f(a.ravel(), b.ravel()) for a, b in zip(scored(w, n, m), scored(w, n, m, "others-scored"))])
                for n, m in CELLS]
    w.c.add("score", "quantus", "MPRT's correlation_spearman, of two maps", ours(w, "rho"),
            similar(q.similarity_func.correlation_spearman))

    def square(a, b):
        from skimage.metrics import structural_similarity
        a, b = (v.reshape(64, 64) / np.abs(v).max() for v in (a, b))
        return structural_similarity(a, b, data_range=2)
    w.c.add("score", "quantus", "RandomLogit's ssim, of two maps", ours(w, "ssim"), similar(q.similarity_func.ssim),
            "Quantus flattens maps, so that windows are 7 pixels of a row, and takes the range of both",
            "scikit-image's `structural_similarity`, which it calls, of both maps in two dimensions, `data_range=2`",
            (ours(w, "ssim"), similar(square)))


def ones(mine):
    """The cells of scores, each 1."""
    return [(cell, np.ones(np.shape(v))) for cell, v in mine]


def shares(mine, theirs):
    """Theirs over ours: scores that may be of any size."""
    return [np.asarray(t).reshape(np.shape(v)) / v for (_, v), t in zip(mine, theirs)]


def compact(w):
    """Metrics of a map alone, and of a map and a mask."""
    import quantus as q

    quiet = dict(disable_warnings=True, display_progressbar=False)
    masks = w.ours("images", "masks")[1][:, None].astype(bool)

    def call(metric):
        return theirs(w, lambda net, x, t, a: metric(model=net, x_batch=x, y_batch=t, a_batch=a, s_batch=masks,
                                                     channel_first=True, device="cpu"))

    def add(name, mine, metric, *rest):
        w.c.add("score", "quantus", name, mine, call(metric), *rest)

    each = dict(normalise_func=each_by_max, **quiet)
    add("Sparseness", ours(w, "compactness", "gini"), q.Sparseness(**each))
    add("Complexity", ours(w, "compactness", "entropy"), q.Complexity(**quiet))
    add("EffectiveComplexity", ours(w, "compactness", "effective-complexity"), q.EffectiveComplexity(**quiet),
        "Quantus divides by the largest magnitude of the batch", "theirs with a `normalise_func` for each map",
        (ours(w, "compactness", "effective-complexity"), call(q.EffectiveComplexity(**each))))
    add("AUC", ours(w, "roc-auc", "scores"), q.AUC(**quiet))
    add("TopKIntersection", ours(w, "top-k", "scores"), q.TopKIntersection(**quiet))


def subsets(w):
    """Metrics of images without some subsets of their pixels: ours are the subsets."""
    import quantus as q
    from captum.metrics import infidelity

    def drawn(n):
        """The subsets [N, R, pixels] of a net's images."""
        packed = w.ours("subset", "subsets", model=n)[1]
        return np.unpackbits(packed, axis=2)[:, :, :64 * 64].astype(bool)

    def correlation(net, x, t, a):
        chosen = iter(drawn(next(n for n in w.nets if w.nets[n] is net)).transpose(1, 0, 2).reshape(-1, 64 * 64))
        choice, np.random.choice = np.random.choice, lambda *_, **__: values_of(np.flatnonzero(next(chosen)))
        try:
            metric = q.FaithfulnessCorrelation(subset_size=3 * 224, perturb_baseline=0.0, return_aggregate=False,
                                              disable_warnings=True)
            return metric(model=net, x_batch=x, y_batch=t, a_batch=a, channel_first=True, device="cpu")
        finally:
            np.random.choice = choice

    def values_of(pixels):
        return np.concatenate([pixels + c * 64 * 64 for c in range(3)])

    w.c.add("score", "quantus", "FaithfulnessCorrelation, on our subsets", ours(w, "correlation"), theirs(w, correlation),
            within=1e-4)

    def on_squares(n, normalize):
        """captum's infidelity, of all squares."""
        keep = torch.ones(64, 1, 64, 64)
        for k in range(64):
            keep[k, :, k // 8 * 8:k // 8 * 8 + 8, k % 8 * 8:k % 8 * 8 + 8] = 0
        a = torch.from_numpy(w.ours("maps", "maps", method="gradient", model=n)[1]).double()
        net = w.nets[n].double()
        scores = [infidelity(net, lambda inputs: (inputs * (1 - keep), inputs * keep), w.x[i:i + 1].double(),
                             a[i:i + 1], target=w.targets[n][i:i + 1], n_perturb_samples=64, normalize=normalize)
                  for i in range(len(w.x))]
        w.nets[n].float()
        return torch.cat(scores).detach().numpy()

    nets = ("vgg", "resnet")
    for port, normalize in (("scores", False), ("scaled", True)):
        mine = [w.ours("infidelity-gradient", port, method="gradient", model=n) for n in nets]
        w.c.add("score", "captum", "infidelity(normalize=%s), of the 8×8 squares" % normalize, mine,
                [on_squares(n, normalize) for n in nets], within=1e-3)


def probabilities(curves):
    """The first response of curves [N, 3, points]."""
    return curves[:, 0]


def after(curves):
    """The probabilities after each step, without the image itself."""
    return probabilities(curves)[:, 1:]


def area_under(curves):
    return np.trapezoid(curves, axis=1) / (curves.shape[1] - 1)


def ordered(a):
    """Maps with the same order of pixels in which no two are equal: of these the first is larger."""
    flat = a.reshape(len(a), -1)
    ranks = np.empty_like(flat)
    np.put_along_axis(ranks, np.argsort(-flat, axis=1, kind="stable"), np.arange(flat.shape[1], 0, -1.0)[None], 1)
    return ranks.reshape(a.shape)


def each_by_max(a, **_):
    """Quantus' normalise_by_max, map by map."""
    largest = np.abs(a).reshape(len(a), -1).max(1)
    return a / largest.reshape(-1, *[1] * (a.ndim - 1))


def road(w):
    from pytorch_grad_cam.metrics import road as r
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputSoftmaxTarget

    def combined(noise, maps):
        def f(net, x, t, a):
            old = r.NoisyLinearImputer.__init__.__defaults__
            r.NoisyLinearImputer.__init__.__defaults__ = (noise,) + old[1:]
            torch.manual_seed(0)
            try:
                return r.ROADCombined(percentiles=[10, 50, 90])(
                    torch.from_numpy(x), maps(a)[:, 0], [ClassifierOutputSoftmaxTarget(int(k)) for k in t], net)
            finally:
                r.NoisyLinearImputer.__init__.__defaults__ = old
        return theirs(w, f)

    w.c.add("score", "grad-cam", "ROADCombined(percentiles=[10, 50, 90])", ours(w, "road", "combined"),
            combined(0.01, lambda a: a), "its noise of 0.01 has no seed; pixels equal to the percentile all go",
            "theirs with `NoisyLinearImputer(noise=0)` for maps of the pixels' ranks",
            (ours(w, "road", "combined"), combined(0.0, ordered)))


def pic(w):
    from saliency.metrics import pic as p

    np.trapz = np.trapezoid
    thresholds = [.005, .01, .02, .03, .04, .05, .07, .10, .13, .21, .34, .5, .75]
    mask = w.ours("pic-ends", "mask", model="vgg")[1].reshape(-1, 64, 64)[0] > 0

    def area(net, x, t, a, lengths=None, responses=None):
        """SIC of each image; with lengths and responses, at the start, the thresholds and the end, those are taken."""
        scores = []
        for i in range(len(x)):
            def predict(images):
                if responses is not None:
                    return [next(given)]
                z = (torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
                with torch.no_grad():
                    return net(z).softmax(1)[:, int(t[i])].numpy()

            measure = p.estimate_image_entropy
            if responses is not None:  # in the order in which they are asked for
                order = [14, 0] + list(range(1, 14))
                given, sizes = iter(responses[i][order]), iter(lengths[i][order])
                p.estimate_image_entropy = lambda image: next(sizes)
            try:
                scores.append(p.compute_pic_metric(w.pixels[i].transpose(1, 2, 0), np.abs(a[i, 0]), mask, predict,
                                                   thresholds).auc)
            except p.ComputePicMetricError:
                scores.append(np.nan)
            finally:
                p.estimate_image_entropy = measure
        return scores

    def fed(net, x, t, a):
        n, m = next((n, m) for n, m in CELLS if w.nets[n] is net and np.array_equal(scored(w, n, m), a))
        curves = w.ours("pic-curves", "curves", model=n, method=m)[1]
        lengths = w.ours("pic-curves", "lengths", model=n, method=m)[1]
        return area(net, x, t, a, lengths.reshape(len(x), -1)[:, :15], probabilities(curves))

    w.c.add("score", "saliency", "pic.compute_pic_metric, softmax", ours(w, "pic", "sic"), theirs(w, area),
            "lengths depend on the release of libwebp, colours on how points on a circle are triangulated",
            "theirs with the lengths and responses of our images", (ours(w, "pic", "sic"), theirs(w, fed)))

"""RIS, ROS, RRS, continuity and input invariance by Quantus 0.6.0.

    pip install quantus==0.6.0 captum==0.9.0 torch 'numpy<2.4'
    python axioms.py axioms.npz

Prints what of Quantus can't be compared: the verdicts of Completeness and InputInvariance.
"""

import sys
import warnings

import numpy as np
import quantus
import torch
from captum.attr import InputXGradient, IntegratedGradients, Saliency
from quantus.metrics.axiomatic.input_invariance import perturb_batch

warnings.filterwarnings("ignore")
quiet = {"abs": False, "normalise": False, "disable_warnings": True}


def explain(method):
    def explained(model, inputs, targets, **_):
        x = torch.tensor(np.asarray(inputs), dtype=torch.float32)
        more = {"abs": False} if method is Saliency else {}
        a = method(model).attribute(x, target=torch.tensor(np.asarray(targets)), **more)
        return a.sum(1, keepdim=True).detach().numpy()

    return explained


def stability(r):
    """Objectives of the three scores for 5 draws of 2 images, and their maxima."""
    found = {}
    a = r.normal(size=(2, 1, 6, 6))
    a[0, 0, 0, :3] = 0
    x, h, z = r.normal(size=(2, 3, 6, 6)), r.normal(size=(2, 4)), r.normal(size=(2, 20))
    x[:, :, 1, 1] = z[:, 3] = 0
    x[0, :, 1, 1] = 0
    shake = lambda v: v + 0.1 * r.normal(size=(5, *v.shape))
    aa, xx, hh, zz = shake(a), shake(x), shake(h), shake(z)
    ris, ros, rrs = (quantus.RelativeInputStability(disable_warnings=True),
                     quantus.RelativeOutputStability(disable_warnings=True),
                     quantus.RelativeRepresentationStability(disable_warnings=True))
    found["ris"] = np.max([ris.relative_input_stability_objective(x.copy(), xx[k], a, aa[k])
                           for k in range(5)], axis=0)
    found["ros"] = np.max([ros.relative_output_stability_objective(h, hh[k], a, aa[k]) for k in range(5)], axis=0)
    found["rrs"] = np.max([rrs.relative_representation_stability_objective(z.copy(), zz[k], a, aa[k])
                           for k in range(5)], axis=0)
    found.update(a=a, x=x, h=h, z=z, aa=aa, xx=xx, hh=hh, zz=zz)
    return found


class Linear(torch.nn.Module):
    def forward(self, x):
        return torch.stack([x.sum((1, 2, 3)), -x.sum((1, 2, 3))], 1)


def continuity(r):
    """A method that is linear in the image: each pixel times a weight."""
    x, w = r.random((2, 3, 8, 8)).astype(np.float32), r.normal(size=(1, 3, 8, 8)).astype(np.float32)
    x[:, :, 0, 0] = 0  # black is the least value of an image
    times = lambda model, inputs, targets, **_: (inputs * w).sum(1, keepdims=True)
    c = quantus.Continuity(nr_steps=5, return_nan_when_prediction_changes=False, **quiet)
    scores = c(model=Linear().eval(), x_batch=x, y_batch=np.zeros(2, int), a_batch=None, explain_func=times)
    # The steps begin at −W, and have (2·W + 1)//5 pixels.
    return {"cx": x, "cw": w, "cdx": -8 + 3 * np.arange(1, 6), "continuity": np.array(scores)}


def verdicts(r):
    x = r.random((6, 3, 12, 12)).astype(np.float32)
    for padding in 0, 1:
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=padding), torch.nn.ReLU(),
                                  torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16, 5)).eval()
        with torch.no_grad():
            logits, zeros = net(torch.tensor(x)).numpy(), net(torch.tensor(0 * x)).numpy()
        y = logits.argmax(1)
        ig = IntegratedGradients(net).attribute(torch.tensor(x), target=torch.tensor(y), n_steps=200)
        a = ig.detach().numpy().sum(1, keepdims=True)
        difference = logits[range(6), y] - zeros[range(6), y]
        ours = np.abs(a.reshape(6, -1).astype(float).sum(1) - difference) / np.abs(difference)
        print("padding", padding)
        print("  Completeness of integrated gradients", quantus.Completeness(**quiet)(
            model=net, x_batch=x, y_batch=y, a_batch=a), "relative error", ours)
        m = quantus.helpers.model.pytorch_model.PyTorchModel(net, channel_first=True)
        shifted = m.add_mean_shift_to_first_layer(-1, (1, 3, 12, 12))
        with torch.no_grad():
            print("  outputs of the shifted model differ by",
                  np.abs(shifted(torch.tensor(x - 1)).numpy() - logits).max())
        i = quantus.InputInvariance(**quiet)
        moved = perturb_batch(perturb_func=i.perturb_func, indices=np.tile(np.arange(0, x[0].size), (6, 1)),
                              indexed_axes=np.arange(0, x[0].ndim), arr=x)
        print("  values that stay, by image", ((moved - x).round(3) == 0).sum((1, 2, 3)))
        for method in Saliency, InputXGradient:
            print("  InputInvariance of", method.__name__, i(model=net, x_batch=x, y_batch=y, a_batch=None,
                                                             explain_func=explain(method)))


def main(out):
    found = stability(np.random.default_rng(1)) | continuity(np.random.default_rng(2))
    np.savez_compressed(out, **found)
    print({k: v for k, v in found.items() if k in ("ris", "ros", "rrs", "continuity")})
    verdicts(np.random.default_rng(0))


main(*sys.argv[1:])

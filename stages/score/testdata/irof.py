"""Makes irof.json with Quantus 0.6.0: curves of IROF on grey images, and its scores.

pip install quantus==0.6.0 "numpy<2.4" scikit-image==0.26.0

With images in colour, Quantus' IROF stops: it compares the shape of its mask with the image's. With NumPy
2.4, from which trapz is gone, it stops on all images. A batch has one image: its substrate is the batch's mean.
"""

import json
from pathlib import Path

import numpy as np
import quantus
from quantus.helpers.model.model_interface import ModelInterface

assert quantus.__version__ == "0.6.0"
rng = np.random.default_rng(5)
SIDE = 24
weights = rng.normal(size=(3, SIDE * SIDE)) / SIDE


class Linear(ModelInterface):
    """Softmax of a linear function, which keeps the responses that it is asked for."""

    def __init__(self):
        super().__init__(None)
        self.asked = []

    def predict(self, x, **kwargs):
        z = x.reshape(len(x), -1) @ weights.T
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        self.asked.append(p)
        return p

    def shape_input(self, x, shape, channel_first=None, batched=False):
        return x.reshape(-1, 1, SIDE, SIDE)

    def unused(self, *args, **kwargs):
        raise NotImplementedError

    get_softmax_arg_model = get_model = state_dict = get_hidden_representations = unused
    get_random_layer_generator = add_mean_shift_to_first_layer = random_layer_generator_length = unused


cases = []
for seed in range(3):
    y, x = np.mgrid[:SIDE, :SIDE]
    image = np.sin(x / (2 + seed)) + np.cos(y / 3) + 0.3 * rng.normal(size=(SIDE, SIDE))
    relevance = np.abs(rng.normal(size=(SIDE, SIDE)) + image)
    model = Linear()
    label = int(model.predict(image[None]).argmax())
    model.asked.clear()
    metric = quantus.IROF(segmentation_method="slic", perturb_baseline="mean", abs=False, normalise=False,
                          return_aggregate=False, disable_warnings=True, display_progressbar=False)
    score = metric.evaluate_batch(model, image[None, None].copy(), np.array([label]),
                                  relevance[None, None].copy())[0]
    cases.append({"curve": [float(p[0, label]) for p in model.asked], "quantus": float(score)})
Path(__file__).with_suffix(".json").write_text(json.dumps(cases) + "\n")
print([(c["quantus"], len(c["curve"])) for c in cases])

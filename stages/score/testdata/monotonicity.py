"""Writes monotonicity.json: maps of a small net, what Quantus' Monotonicity makes of them, and the responses.

Needs quantus 0.6.0 and numpy < 2.4: python3 monotonicity.py > monotonicity.json

The net is two random layers on images of 1x4x5. responses are those of AIX360's definition: pixels are
restored in the order of their rising relevance, one by one, from an image of the baseline's value.
"""
import json
import warnings

import numpy as np
import quantus

warnings.simplefilter("ignore")
draw = np.random.default_rng(31)
W, V = draw.standard_normal((12, 20)), draw.standard_normal((3, 12))


class Net:
    def predict(self, x, **_):
        z = np.tanh(x.reshape(len(x), -1) @ W.T) @ V.T
        e = np.exp(z - z.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def shape_input(self, x, shape, **_):
        return np.asarray(x).reshape(-1, *shape[1:])


def main():
    n, net = 8, Net()
    images, maps = draw.random((n, 1, 4, 5)), np.abs(draw.standard_normal((n, 1, 4, 5)))
    classes = net.predict(images).argmax(1)
    out = {}
    for name, value in [("black", images.min((1, 2, 3))), ("0.3", np.full(n, 0.3))]:
        metric = quantus.Monotonicity(perturb_baseline="black" if name == "black" else 0.3, features_in_step=1,
                                      disable_warnings=True, display_progressbar=False)
        quantus_says = metric.evaluate_batch(model=net, x_batch=images, y_batch=classes, a_batch=maps)
        responses = []
        for x, a, c, b in zip(images, maps, classes, value):
            state = np.full(20, b)
            row = [net.predict(state[None])[0, c]]
            for i in np.argsort(a.ravel()):
                state[i] = x.ravel()[i]
                row.append(net.predict(state[None])[0, c])
            responses.append(row)
        monotone = [bool(np.all(np.diff(row[1:]) >= 0)) for row in responses]
        out[name] = {"quantus": [bool(x) for x in quantus_says], "monotone": monotone, "responses": responses}
    print(json.dumps({"quantus": quantus.__version__, "numpy": np.__version__, "baselines": out}))


main()

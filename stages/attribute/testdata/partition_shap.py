"""Reference maps of the library shap 0.51.0, class PartitionExplainer with the masker Image.

    python partition_shap.py QUICKSTART > partition_shap.json

"games" are of functions of hidden images, Σ_k tanh(Σ_j a_kj m_j) with a_kj = sin(1 + 7k + 3j) / √J,
computed in double precision: their leaves are the values of an image of shape "shape", row by
row, channels last. "nets" are of the quickstart's nets on an image of sines, with the masker
blur(6,6) of OpenCV 5.0.0 and with a black one: [H,W,C], float32, logits of class 2. Leaves are the
values of channels; 10⁶ evaluations exhaust the tree. Large maps have every 5th value, those of nets every 7th of the
sum over channels.
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import shap

HIDDEN = 5


def game(m):
    j = m.shape[1]
    a = np.sin(1 + 7 * np.arange(HIDDEN)[:, None] + 3 * np.arange(j)) / np.sqrt(j)
    return np.tanh(m @ a.T).sum(1)


def explain(f, masker, x, budget, **more):
    np.random.seed(0)
    e = shap.PartitionExplainer(f, masker)
    return np.asarray(e(x[None], max_evals=budget, silent=True, **more).values, float)


def games():
    for shape, budget in ((5, 3, 3), 10**6), ((3, 8, 1), 10**6), ((1, 7, 2), 10**6), ((16, 16, 3), 50), \
            ((16, 16, 3), 500), ((16, 16, 3), 2000), ((16, 16, 1), 333), ((16, 16, 1), 10**6):
        x = np.ones(shape)
        v = explain(lambda z: game(z.reshape(len(z), -1)), shap.maskers.Image(np.zeros(shape)), x, budget)
        yield {"shape": shape, "evaluations": budget, "values": v.ravel()[:: 5 if v.size > 200 else 1].tolist()}


def image(side):
    y, x = np.mgrid[:side, :side] / side
    z = [.5 + .5 * np.sin(9 * x + 4 * y * (1 + c) + c) * np.cos(5 * y - 3 * c * x) for c in range(3)]
    return np.stack(z, -1).astype(np.float32)


def nets(folder):
    for name in "vgg", "vit":
        s = onnxruntime.InferenceSession(folder / f"{name}.onnx")
        inp = s.get_inputs()[0]
        x = image(inp.shape[2])

        def f(z):
            return np.concatenate([s.run(None, {inp.name: np.ascontiguousarray(r.transpose(2, 0, 1)[None], np.float32)})[0]
                                   for r in z]).astype(float)[:, 2]

        for masker in "blur(6,6)", np.zeros(x.shape, np.float32):
            kind = masker if isinstance(masker, str) else "zero"
            for budget in 60, 500:
                v = explain(f, shap.maskers.Image(masker, x.shape), x, budget)[0]
                yield {"net": name, "substrate": kind, "evaluations": budget,
                       "f": [float(f(x[None])[0])], "values": [float(f"{u:.6g}") for u in v.sum(-1).ravel()[::7]]}


print(json.dumps({"games": list(games()), "nets": list(nets(Path(sys.argv[1])))}))

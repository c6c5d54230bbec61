"""runexp_xai.model on the quickstart's nets in $NETS, which takes images in any number."""

import importlib.util
import os
import unittest

HERE = all(importlib.util.find_spec(name) for name in ("numpy", "onnxruntime"))


@unittest.skipUnless(HERE, "numpy or onnxruntime isn't installed")
class OfModel(unittest.TestCase):
    def setUp(self):
        import numpy
        import onnxruntime

        with open(os.path.join(os.environ["NETS"], "vgg.onnx"), "rb") as f:
            self.file = f.read()
        self.session = onnxruntime.InferenceSession(self.file, providers=["CPUExecutionProvider"])
        (given,) = self.session.get_inputs()
        self.head = dict(
            channels=3, height=given.shape[2], width=given.shape[3], batch=0, labels=[], probabilities=False,
            independent=False, heads=0, disabled=[], scale=1, mean=[0.5, 0.4, 0.3], std=[0.5, 0.25, 1],
        )
        images = numpy.random.default_rng(5).random((5, 3, *given.shape[2:]), numpy.float32)
        self.head["classes"] = self._run(images).shape[1]
        self.images, self.numpy = images, numpy

    def _run(self, x):
        return self.session.run(None, {self.session.get_inputs()[0].name: x})[0]

    def _model(self, **head):
        from runexp_xai.model import Model

        return Model(dict(self.head, **head), self.file)

    def test_normalises(self):
        x = self._model().normalise(self.images)
        for c, (mean, std) in enumerate(zip(self.head["mean"], self.head["std"])):
            self.numpy.testing.assert_allclose(x[:, c], (self.images[:, c] - mean) / std, atol=1e-6)
        red, green, blue = self.images[0].astype(float)
        grey = self._model(channels=1, mean=[0.5], std=[0.25], scale=2).normalise(self.images[0])
        want = (2 * (0.299 * red + 0.587 * green + 0.114 * blue) - 0.5) / 0.25
        self.numpy.testing.assert_allclose(grey, want[None], atol=1e-5)
        with self.assertRaisesRegex(ValueError, "and the model takes"):
            self._model().normalise(self.images[:, :, 1:])

    def test_answers(self):
        want = self._run(self.images)
        for batch in (0, 1, 2, 5, 7):
            got = self._model(batch=batch).answers(self.images)
            self.numpy.testing.assert_allclose(got, want, atol=1e-4)
        self.assertEqual(self._model().answers(self.images[:0]).shape, (0, self.head["classes"]))
        self.assertEqual(self._model().logits(self.images).dtype, self.numpy.float64)
        with self.assertRaisesRegex(ValueError, "and the model takes"):
            self._model().answers(self.images[0])

    def test_probabilities(self):
        np, z = self.numpy, self._run(self.images).astype(float)
        e = np.exp(z)
        np.testing.assert_allclose(self._model().probabilities(self.images), e / e.sum(1, keepdims=True), atol=1e-5)
        each = self._model(independent=True)
        np.testing.assert_allclose(each.probabilities(self.images), 1 / (1 + np.exp(-z)), atol=1e-5)
        half = self.head["classes"] // 2
        heads = self._model(heads=2).probabilities(self.images)
        first = e[:, :half] / e[:, :half].sum(1, keepdims=True)
        np.testing.assert_allclose(heads[:, :half], first, atol=1e-5)
        np.testing.assert_allclose(heads.sum(1), np.full(5, 2), atol=1e-6)
        raw = self._model(probabilities=True)
        np.testing.assert_allclose(raw.probabilities(self.images), z, atol=1e-4)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(raw.logits(self.images), np.log(z), atol=1e-3)


if __name__ == "__main__":
    unittest.main()

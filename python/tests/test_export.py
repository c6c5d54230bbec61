"""runexp_xai.export on small nets. All but the first test need PyTorch and onnxruntime."""

import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

import runexp_xai

try:
    import torch
except ImportError:
    torch = None

PACKAGES = torch is not None and importlib.util.find_spec("onnxruntime") is not None


class Without(unittest.TestCase):
    def test_without_torch(self):
        with mock.patch.dict(sys.modules, torch=None):
            with self.assertRaisesRegex(ModuleNotFoundError, "^this needs torch: pip install torch$"):
                runexp_xai.export(None, None)


def small(*last):
    """A classifier of 5 classes with BatchNormalization."""
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(4, 5), *last)


@unittest.skipUnless(PACKAGES, "needs torch and onnxruntime")
class Export(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        torch.manual_seed(1)
        self.example = torch.randn(1, 3, 16, 16)

    def around(self, function):
        """Returns a net that computes function(small net, images)."""

        class Around(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = small()

            def forward(self, images):
                return function(self.inner, images)

        return Around()

    def test_classifier(self):
        net = small()
        net[1].running_mean += 0.5
        net[1].eval()
        made = runexp_xai.export(net, self.example, labels=["a", "b", "c", "d", "é"])
        self.assertEqual((made.path, os.fspath(made), made.classes), ("sequential.onnx",) * 2 + (5,))
        self.assertLess(made.deviation, 1e-5)
        self.assertEqual(made.notes, [])
        self.assertRegex(repr(made), r"^sequential.onnx: \[N, 3, 16, 16\] to \[N, 5\], .* within [0-9.e-]+, .* up to ")
        self.assertEqual([part.training for part in net.modules()], [True, True, False] + [True] * 4)
        self.assertEqual(sorted(os.listdir(".")), ["sequential.classes.txt", "sequential.onnx"])
        with open("sequential.classes.txt", encoding="utf-8") as f:
            self.assertEqual(f.read(), "a\nb\nc\nd\né\n")

        import onnxruntime

        session = onnxruntime.InferenceSession("sequential.onnx", providers=["CPUExecutionProvider"])
        batch = torch.randn(7, 3, 16, 16)
        with torch.no_grad():
            expected = net.eval()(batch)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"input": batch.numpy()})[0]), expected)
        with open("sequential.onnx", "rb") as f:
            self.assertIn(b"BatchNormalization", f.read())

    def test_softmax(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            made = runexp_xai.export(small(torch.nn.Softmax(1)), self.example, "made/soft.onnx")
        self.assertTrue(os.path.exists("made/soft.onnx"))
        self.assertEqual(len(made.notes), 1)
        self.assertIn("it ends in probabilities by Softmax", made.notes[0])
        self.assertIn(made.notes[0], said.getvalue())
        self.assertIn(made.notes[0], repr(made))

    def test_logits_of_an_object(self):
        class Answer(tuple):
            logits = property(lambda self: self[0])

        made = runexp_xai.export(self.around(lambda net, x: Answer([net(x), x])), self.example, "object.onnx")
        self.assertEqual(made.classes, 5)

    def test_refused(self):
        one = self.example
        counted = []
        cases = {
            "have shape \\[2, 3, 16, 16\\]: a classifier has one number per image and class": (lambda net, x: x, one),
            "returns a tuple: wrap it": (lambda net, x: (net(x), x), one),
            "10 of the 10 answers on example are NaN": (lambda net, x: net(x) / 0 * 0, one),
            "differently each time": (lambda net, x: net(x) + (counted.append(0) or len(counted)), one),
            "depend on the others of its batch": (lambda net, x: net(x) - net(x).mean(0), one),
            "can't write the net: by tracing, .*linalg_eigvals": (
                lambda net, x: torch.linalg.eigvals(net(x)[:, :4].reshape(-1, 2, 2)).real, one),
            "doesn't run on example, of shape \\[2, 4, 16, 16\\]": (lambda net, x: net(x), torch.zeros(1, 4, 16, 16)),
            "example has shape \\[3, 16\\]": (lambda net, x: net(x), torch.zeros(3, 16)),
            "example is uint8": (lambda net, x: net(x), torch.zeros(1, 3, 16, 16, dtype=torch.uint8)),
            "example isn't finite": (lambda net, x: net(x), one * float("nan")),
            "example has no image": (lambda net, x: net(x), one[:0]),
        }
        for cause, (function, example) in cases.items():
            with self.subTest(cause), self.assertRaisesRegex(runexp_xai.ExportError, cause):
                runexp_xai.export(self.around(function), example, "refused.onnx")
        with self.assertRaisesRegex(runexp_xai.ExportError, "weights of float64: .* net.float()"):
            runexp_xai.export(small().double(), one)
        with self.assertRaisesRegex(runexp_xai.ExportError, "4 labels for 5 classes"):
            runexp_xai.export(small(), one, labels="abcd")
        with self.assertRaisesRegex(TypeError, "net is a function"):
            runexp_xai.export(lambda x: x, one)
        self.assertEqual(os.listdir("."), [])

    def test_size_of_the_batch_is_traced(self):
        """A net whose trace has the example's size of batch is exported by the newer exporter, or refused."""
        net = self.around(lambda inner, x: inner(x) + torch.zeros(int(x.shape[0]), 5))
        try:
            made = runexp_xai.export(net, self.example, "traced.onnx")
        except runexp_xai.ExportError as e:
            self.assertRegex(str(e), "by tracing, (on 1 image|ONNX Runtime can't run the file on)")
            return
        self.assertLess(made.deviation, 1e-5)


if __name__ == "__main__":
    unittest.main()

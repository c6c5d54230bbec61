"""Exports a net of PyTorch to ONNX, and checks that the file gives the net's answers."""

import contextlib
import copy
import io
import json
import os
import re
import sys
import tempfile
import warnings

from .errors import ExportError, RunError, count, needed
from .process import call

OPSET = 18

# ONNX's files are of at most 2 GB; larger nets have their weights in further files.
_LARGEST = 2**31 - 1

# The sum of a float32 product depends on its order; a file whose answers differ by more computes something else.
_TOLERANCE = 1e-3


class Exported:
    """An ONNX file that was compared with its net: path; shape, of the input, and classes; deviation, the largest
    difference between the answers of PyTorch and ONNX Runtime; largest, the largest magnitude of an answer; notes, on
    what a reader should know."""

    def __init__(self, path, shape, classes, deviation, largest, notes):
        self.path, self.shape, self.classes, self.deviation = path, shape, classes, deviation
        self.largest, self.notes = largest, notes

    def __fspath__(self):
        return self.path

    def __repr__(self):
        size = ", ".join(map(str, self.shape[1:]))
        text = "%s: [N, %s] to [N, %d], by ONNX Runtime the same as by PyTorch within %.2g, of answers up to %.3g"
        return "\n".join([text % (self.path, size, self.classes, self.deviation, self.largest), *self.notes])


def export(net, example, path=None, labels=None):
    """Writes a torch.nn.Module as one ONNX file that runexp takes, in evaluation mode and for any batch, and returns it
    as Exported, which can stand for its path.

    example is a batch of images as the net takes them, normalised: a tensor or an array [N, channels, height, width].
    path is by default the class's name with .onnx, in the working folder. labels are the names of the classes in their
    order, which are written next to it for "runexp new". The net is left as it was. Raises ExportError if the net isn't
    a classifier, if its answers on example aren't finite or depend on chance or on the rest of the batch, if an
    operator can't be exported, or if ONNX Runtime's answers differ from PyTorch's.
    """
    torch = needed("torch")
    runtime = needed("onnxruntime", "cpu")
    if not isinstance(net, torch.nn.Module):
        raise TypeError("net is a %s, not a torch.nn.Module" % type(net).__name__)
    path = os.fspath(path or type(net).__name__.lower() + ".onnx")
    net, example = _prepared(torch, net, example)
    with _evaluating(torch, net), torch.no_grad():
        expected = _answers(torch, net, example)
        classes = expected.shape[1]
        if labels is not None:
            labels = [str(label) for label in labels]
            if len(labels) != classes:
                raise ExportError("%d labels for %d classes" % (len(labels), classes))
            if any("\n" in label for label in labels):
                raise ExportError("a label has a line break")
        folder = os.path.dirname(os.path.abspath(path))
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            file = os.path.join(made, "net.onnx")
            deviation = _written(torch, runtime, net, example, file)
            notes = _inspected(file)
            os.replace(file, path)
    if labels is not None:
        with open(os.path.splitext(path)[0] + ".classes.txt", "w", encoding="utf-8") as f:
            f.write("".join(label + "\n" for label in labels))
    for note in notes:
        print("%s: %s" % (path, note), file=sys.stderr)
    return Exported(path, tuple(example.shape), classes, deviation, expected.abs().max().item(), notes)


def _prepared(torch, net, example):
    """Returns the net, or a copy of it on the processor, and the example as a batch of two images or more."""
    example = torch.as_tensor(example).detach().cpu()
    if example.ndim != 4:
        raise ExportError("example has shape %s: a batch of images has [N, channels, height, width]; for a model of "
                          "texts see docs/tutorial-text.md" % list(example.shape))
    if len(example) == 0:
        raise ExportError("example has no image")
    if not example.is_floating_point():
        raise ExportError("example is %s: it has pixels as the net takes them, normalised floating-point numbers"
                          % str(example.dtype).replace("torch.", ""))
    if not torch.isfinite(example).all():
        raise ExportError("example isn't finite: it has NaN or infinity")
    weights = [t for t in [*net.parameters(), *net.buffers()] if t.is_floating_point()]
    other = next((t.dtype for t in weights if t.dtype != torch.float32), None)
    if other is not None:
        kind = str(other).replace("torch.", "")
        raise ExportError("the net has weights of %s: export a float32 one, net.float()" % kind)
    size = sum(t.numel() * t.element_size() for t in {id(t): t for t in weights}.values())
    if size > _LARGEST:
        raise ExportError("the net's weights have %.1f GB, and one ONNX file at most 2" % (size / 1e9))
    if any(t.device.type != "cpu" for t in weights):
        net = copy.deepcopy(net).cpu()
    example = example.float()
    return net, torch.cat([example, example.flip(-1)]) if len(example) == 1 else example


@contextlib.contextmanager
def _evaluating(torch, net):
    """Switches the net and each of its parts to evaluation, and back."""
    before = [(part, part.training) for part in net.modules()]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one fused operator, which ONNX lacks
    net.eval()
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part, training in before:
            part.training = training


def _logits(torch, answer):
    """Returns the logits in what a net returns: a tensor, or an object that has them by this name."""
    answer = getattr(answer, "logits", answer)
    if not isinstance(answer, torch.Tensor):
        raise ExportError("the net returns a %s: wrap it, so that it returns the logits alone, a tensor [N, classes]"
                          % type(answer).__name__)
    return answer


def _returning(torch, net):
    """Returns the net as one that returns its logits alone."""

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, images):
            return _logits(torch, self.net(images))

    return Logits().eval()


def _answers(torch, net, example):
    """Returns the net's answers on the example, if they are a classifier's: [N, classes], finite, and of each image
    alone."""
    try:
        answers = _logits(torch, net(example))
    except RuntimeError as e:
        raise ExportError("the net doesn't run on example, of shape %s: %s" % (list(example.shape), e)) from e
    if answers.ndim != 2 or len(answers) != len(example) or not answers.is_floating_point():
        raise ExportError("the net's answers on %d images have shape %s: a classifier has one number per image and "
                          "class, [N, classes]; wrap another net so, such as by the sum of a class's logits"
                          % (len(example), list(answers.shape)))
    if not torch.isfinite(answers).all():
        raise ExportError("%d of the %d answers on example are NaN or infinite"
                          % ((~torch.isfinite(answers)).sum(), answers.numel()))
    tolerance = _TOLERANCE * max(1, answers.abs().max().item())
    if (_logits(torch, net(example)) - answers).abs().max() > tolerance:
        raise ExportError("the net answers the same images differently each time, although it is in evaluation mode")
    if (_logits(torch, net(example[:1])) - answers[:1]).abs().max() > tolerance:
        raise ExportError("the net's answers on an image depend on the others of its batch, although it is in "
                          "evaluation mode")
    return answers


def _written(torch, runtime, net, example, file):
    """Writes the file by the exporter that traces, or by the newer one if that can't, and returns the deviation.
    Neither folds BatchNormalization, for which some methods have rules."""
    batch = {0: "N"}
    same = dict(args=(example,), f=file, input_names=["input"], output_names=["logits"], opset_version=OPSET)
    tracing = dict(dynamo=False, dynamic_axes={"input": batch, "logits": batch},
                   training=torch.onnx.TrainingMode.PRESERVE)
    newer = dict(dynamo=True, dynamic_shapes=(batch,), optimize=False, external_data=False, verbose=False)
    causes = []
    for exporter in (tracing, newer):
        try:
            # What they print repeats the error; of warnings, those of traced sizes matter, which the comparison checks.
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                torch.onnx.export(_returning(torch, net), **same, **exporter)
            if len(os.listdir(os.path.dirname(file))) > 1:
                raise ExportError("the exporter wrote weights to further files")
            return _deviation(torch, runtime, net, example, file)
        except Exception as e:  # exporters raise anything
            causes.append(e)
    text = "PyTorch's exporters can't write the net: by tracing, %s; by torch.export, %s"
    raise ExportError(text % tuple(map(_first, causes))) from causes[0]


def _first(error):
    """Returns the first line of an error, without colours."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _deviation(torch, runtime, net, example, file):
    """Returns the largest difference between the answers of PyTorch and ONNX Runtime, on batches of several sizes."""
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    largest = 0.0
    for batch in (example, example[:1], torch.cat([example, example[:1]])):
        expected = _logits(torch, net(batch))
        try:
            answers = torch.from_numpy(session.run(None, {session.get_inputs()[0].name: batch.numpy()})[0])
        except Exception as e:
            raise ExportError("ONNX Runtime can't run the file on %s, although it was exported for any number: %s"
                              % (count(len(batch), "image"), _first(e))) from e
        if answers.shape != expected.shape:
            raise ExportError("on %s the file's answers have shape %s, and PyTorch's %s"
                              % (count(len(batch), "image"), list(answers.shape), list(expected.shape)))
        difference = (answers - expected).abs().max().item()
        if not difference <= _TOLERANCE * max(1, expected.abs().max().item()):
            text = "on %s the answers of ONNX Runtime differ from PyTorch's by up to %.3g, where the largest is %.3g"
            raise ExportError(text % (count(len(batch), "image"), difference, expected.abs().max().item()))
        largest = max(largest, difference)
    return largest


def _inspected(file):
    """Returns what the command has to say about the file, or raises its problem."""
    try:
        found = json.loads(call("inspect", file, "--json"))
    except RunError as e:
        raise ExportError("runexp can't read the exported file: %s" % e.stderr.strip().replace(file, "net.onnx")) from e
    if found.get("problem"):
        if found.get("no_classifier"):
            raise ExportError("runexp can't take the net: %s" % found["problem"])
        return ["runexp inspect: %s" % found["problem"]]
    notes = []
    head = found["head"]
    if head["kind"] != "logits":
        through = " by " + ", ".join(head["through"]) if head.get("through") else ""
        where = "" if found["feed"]["output"] == "logits" else "; what is explained are the logits before"
        notes.append("it ends in %s%s%s" % (head["kind"], through, where))
    if found.get("alone"):
        notes.append("images are fed one by one: %s" % found["alone"])
    if found.get("no_gradient"):
        notes.append("methods that need gradients don't fit: %s" % found["no_gradient"])
    return notes + (found.get("notes") or [])

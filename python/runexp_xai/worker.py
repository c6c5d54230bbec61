"""Calls one function of a file for runexp: python -m runexp_xai.worker FILE NAME.

On its standard input and output are messages: the length of a JSON object in four bytes, the object, and the arrays
that it lists. What the function prints goes to the standard error.
"""

import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import json
import os
import signal
import struct
import sys
import threading
import time
import traceback

from .model import Model
from .results import OF, result

ARRAYS = ("map", "image", "mask", "segments", "label", "target")
INPUTS = ARRAYS + ("model", "rng")

# To be raised when a function is called with other values than before, or its result is taken otherwise.
CALLS = 2  # 2: a metric isn't asked of a map that isn't defined


def main(path, name):
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # for what the function starts, too
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    code = _Code(folder)
    try:
        function = _function(path, name, code)
        stage = _described(function, path, code)
        limit = _limit(function.runexp_memory)
    except BaseException as e:
        return _send(replies, {"error": _reason(e, folder)})
    _send(replies, stage)
    model = None
    while header := requests.read(4):
        call = json.loads(requests.read(struct.unpack("<I", header)[0]))
        arrays = {a["name"]: _array(requests, a) for a in call["arrays"]}
        if "model" in call:
            model = None  # before another takes its memory
            model = Model(call["model"], requests.read(call["model"]["bytes"]))
        try:
            value = _call(function, stage, arrays, model, call)
            code.same()
            x = result(stage["kind"], value, arrays[OF[stage["kind"]]])
            message, data = {"dtype": x.dtype.name, "shape": list(x.shape)}, x.data if x.size else b""
        except Exception as e:
            why = limit if isinstance(e, MemoryError) else ""
            message, data = {"error": _reason(e, folder) + why}, b""
        _send(replies, message, data)


def _end_with(parent):
    """Ends the process and those that it has started when the command has ended, even in the midst of a call."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def _limit(memory):
    """Limits how much the process may allocate, in GB. Returns what there is to say where it wants more."""
    if not sys.platform.startswith("linux"):
        return ""  # elsewhere this limit isn't one of what libraries allocate
    import resource

    limits = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = min([int(memory * 1e9)] + [limit for limit in limits if limit != resource.RLIM_INFINITY])
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, limits[1]))
    return "; the process may allocate %g GB: memory of the decorator sets how many" % (allowed / 1e9)


class _Code:
    """Imports the modules in a folder, and has the digests of their files."""

    def __init__(self, folder):
        self.folder = folder
        # Libraries in folders that were named to the interpreter, such as by PYTHONPATH, aren't code of the function.
        self.libraries = tuple(p + os.sep for p in map(os.path.abspath, sys.path) if p.startswith(folder + os.sep))
        self.digests = {}  # by file: of the source that was run
        self.known = None  # the files in the stage's code
        self.modules = 0
        sys.path.insert(0, folder)
        sys.path_hooks.insert(0, self._finder)
        sys.path_importer_cache.clear()

    def _finder(self, path):
        file = os.path.join(os.path.abspath(path), "")
        if not file.startswith(self.folder + os.sep) or "site-packages" in file or file.startswith(self.libraries):
            raise ImportError(path)
        return importlib.machinery.FileFinder(
            path,
            (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
            (self.loader, importlib.machinery.SOURCE_SUFFIXES),
            (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
        )

    def loader(self, name, path):
        return _Loader(self.digests, name, path)

    def files(self):
        """Returns the files beside the function's that it imported."""
        files = set(self.digests)
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            # torch.classes claims a relative file that doesn't exist.
            if file and os.path.isabs(file) and file.startswith(self.folder + os.sep) and "site-packages" not in file:
                files.add(file)
        return files

    def digest(self, named):
        """Returns the digest of all files, with those that the function names."""
        self.modules = len(sys.modules)
        self.known = self.files() | named
        code = hashlib.sha256()
        for file in sorted(self.known):
            code.update(("%s %s\n" % (os.path.relpath(file, self.folder), self._of(file))).encode("utf-8", "replace"))
        return code

    def _of(self, file):
        if file not in self.digests:
            with open(file, "rb") as f:
                self.digests[file] = _sha256(f.read())
        return self.digests[file]

    def same(self):
        """Raises an error if a call has imported what isn't in the stage's code."""
        if len(sys.modules) == self.modules:
            return
        late = sorted(f for f in self.files() - self.known if not f.startswith(self.libraries))
        if late:
            raise ImportError(
                "a call imported %s: import it at the head of the file, so that a change of it is noticed"
                % os.path.relpath(late[0], self.folder)
            )
        self.modules = len(sys.modules)


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs the source, whose digest it notes, and never what was compiled of one with the same time and size."""

    def __init__(self, digests, name, path):
        super().__init__(name, path)
        self.digests = digests

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        source = self.get_data(path)
        digest = _sha256(source)
        if self.digests.setdefault(path, digest) != digest:
            raise ImportError("%s was changed while it was imported: run it again" % os.path.basename(path))
        return self.source_to_code(source, path)


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


def _function(path, name, code):
    module = "_runexp_" + os.path.basename(path)[:-3]
    spec = importlib.util.spec_from_file_location(module, path, loader=code.loader(module, os.path.abspath(path)))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not hasattr(function, "runexp_stage"):
        marked = sorted(n for n, f in vars(module).items() if hasattr(f, "runexp_stage"))
        raise LookupError(
            "there is no function %s with a decorator of runexp_xai.stage, only %s" % (name, ", ".join(marked))
            if marked
            else "no function has a decorator of runexp_xai.stage, such as @metric()"
        )
    return function


def _described(function, path, code):
    """Returns what the function is: its kind, inputs and parameters, and the digest of what decides its results."""
    import numpy

    stage = dict(function.runexp_stage, inputs=[], params=[], doc=inspect.getdoc(function) or "")
    for p in inspect.signature(function).parameters.values():
        if p.name in INPUTS:
            stage["inputs"].append(p.name)
        elif p.default is p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(
                "the parameter %s needs a default: without one it is an input, and these are %s"
                % (p.name, ", ".join(INPUTS))
            )
        elif type(p.default) not in (bool, int, float, str):
            raise TypeError("the default of %s is neither a bool, an int, a float nor a str" % p.name)
        elif p.default != p.default or p.default in (float("inf"), float("-inf")):
            raise TypeError("the default of %s isn't finite" % p.name)
        else:
            stage["params"].append({"name": p.name, "type": type(p.default).__name__, "default": p.default})
    if OF[stage["kind"]] not in stage["inputs"]:
        raise TypeError("the function has no parameter %s" % OF[stage["kind"]])
    code = code.digest({os.path.abspath(path)} | {os.path.join(code.folder, f) for f in stage["files"]})
    versions = {p: importlib.metadata.version(p) for p in stage["packages"]}
    versions.update(numpy=numpy.__version__, python="%d.%d" % sys.version_info[:2], runexp_xai=CALLS)
    if "model" in stage["inputs"]:
        versions["onnxruntime"] = _runtime()
    code.update(json.dumps(versions, sort_keys=True).encode())
    code.update(json.dumps(function.runexp_stage, sort_keys=True).encode())
    return dict(stage, code=code.hexdigest()[:32])


def _runtime():
    """Returns the version of onnxruntime, which several packages have; None without it."""
    try:
        import onnxruntime
    except ImportError:
        return None
    return onnxruntime.__version__


def _array(stream, a):
    import numpy

    dtype = numpy.dtype(a["dtype"]).newbyteorder("<")
    count = int(numpy.prod(a["shape"], dtype=numpy.int64))
    data = bytearray(stream.read(count * dtype.itemsize))
    return numpy.frombuffer(data, dtype).reshape(a["shape"])


def _call(function, stage, arrays, model, call):
    import numpy

    values = dict(call["params"])
    values.update((p["name"], float(values[p["name"]])) for p in stage["params"] if p["type"] == "float")
    for name in stage["inputs"]:
        x = arrays.get(name)
        if name == "rng":
            x = numpy.random.default_rng(call["seed"])
        elif name == "model":
            x = model
        elif name == "image" and x.dtype == numpy.uint8:
            x = x.astype(numpy.float32) / numpy.float32(255)
        elif name == "label":
            x = int(x[0])
        elif name == "target":
            x = int(x[0]) if len(x) == 1 or x[1] < 0 else [int(v) for v in x[:2]]  # a third is the model's head
        values[name] = x
    with numpy.errstate(all="ignore"):
        return function(**values)


def _reason(e, folder):
    """Returns an exception as a text, after the line of the user's file that raised it."""
    at = ""
    for frame in traceback.extract_tb(e.__traceback__):
        if frame.filename.startswith(folder + os.sep):
            at = "%s:%d: " % (os.path.relpath(frame.filename, folder), frame.lineno)
    if isinstance(e, SyntaxError) and e.lineno:
        return "%s:%d: SyntaxError: %s" % (os.path.basename(e.filename or ""), e.lineno, e.msg)
    return "%s%s: %s" % (at, type(e).__name__, e)


def _send(stream, message, data=b""):
    text = json.dumps(message).encode()
    stream.write(struct.pack("<I", len(text)) + text)
    stream.write(data)
    stream.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

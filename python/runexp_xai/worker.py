"""Calls one function of a file for runexp: python -m runexp_xai.worker FILE NAME.

On its standard input and output are messages: the length of a JSON object in four bytes, the object, and the arrays
that it lists. What the function prints goes to the standard error.
"""

import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import struct
import sys
import traceback

ARRAYS = ("map", "image", "mask", "segments", "label", "target")


def main(path, name):
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    sys.stdin = open(os.devnull)
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        function = _function(path, name)
        stage = _described(function, path, folder)
    except BaseException as e:
        return _send(replies, {"error": _reason(e, folder)})
    _send(replies, stage)
    while header := requests.read(4):
        call = json.loads(requests.read(struct.unpack("<I", header)[0]))
        arrays = {a["name"]: _array(requests, a) for a in call["arrays"]}
        try:
            message, data = _result(stage, _call(function, stage, arrays, call), arrays["map"])
        except Exception as e:
            message, data = {"error": _reason(e, folder)}, b""
        _send(replies, message, data)


def _function(path, name):
    spec = importlib.util.spec_from_file_location("_runexp_" + os.path.basename(path)[:-3], path)
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


def _described(function, path, folder):
    """Returns what the function is: its kind, inputs and parameters, and the digest of what decides its results."""
    import numpy

    stage = dict(function.runexp_stage, inputs=[], params=[], doc=inspect.getdoc(function) or "")
    for p in inspect.signature(function).parameters.values():
        if p.name in ARRAYS or p.name == "rng":
            stage["inputs"].append(p.name)
        elif p.default is p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(
                "the parameter %s needs a default: without one it is an input, and these are %s"
                % (p.name, ", ".join(ARRAYS + ("rng",)))
            )
        elif type(p.default) not in (bool, int, float, str):
            raise TypeError("the default of %s is neither a bool, an int, a float nor a str" % p.name)
        elif p.default != p.default or p.default in (float("inf"), float("-inf")):
            raise TypeError("the default of %s isn't finite" % p.name)
        else:
            stage["params"].append({"name": p.name, "type": type(p.default).__name__, "default": p.default})
    if "map" not in stage["inputs"]:
        raise TypeError("the function has no parameter map")
    files = {os.path.abspath(path)} | {os.path.join(folder, f) for f in stage["files"]}
    for module in list(sys.modules.values()):  # those beside the file that it imported
        file = getattr(module, "__file__", None)
        # torch.classes claims a relative file that doesn't exist.
        if file and os.path.isabs(file) and file.startswith(folder + os.sep) and "site-packages" not in file:
            files.add(file)
    code = hashlib.sha256()
    for file in sorted(files):
        with open(file, "rb") as f:
            digest = hashlib.file_digest(f, "sha256") if hasattr(hashlib, "file_digest") else hashlib.sha256(f.read())
        code.update(("%s %s\n" % (os.path.relpath(file, folder), digest.hexdigest())).encode())
    versions = {p: importlib.metadata.version(p) for p in stage["packages"]}
    versions.update(numpy=numpy.__version__, python="%d.%d" % sys.version_info[:2])
    code.update(json.dumps(versions, sort_keys=True).encode())
    code.update(json.dumps(function.runexp_stage, sort_keys=True).encode())
    return dict(stage, code=code.hexdigest()[:32])


def _array(stream, a):
    import numpy

    dtype = numpy.dtype(a["dtype"]).newbyteorder("<")
    count = int(numpy.prod(a["shape"], dtype=numpy.int64))
    data = bytearray(stream.read(count * dtype.itemsize))
    return numpy.frombuffer(data, dtype).reshape(a["shape"])


def _call(function, stage, arrays, call):
    import numpy

    values = dict(call["params"])
    values.update((p["name"], float(values[p["name"]])) for p in stage["params"] if p["type"] == "float")
    for name in stage["inputs"]:
        x = arrays.get(name)
        if name == "rng":
            x = numpy.random.default_rng(call["seed"])
        elif name == "image" and x.dtype == numpy.uint8:
            x = x.astype(numpy.float32) / numpy.float32(255)
        elif name == "label":
            x = int(x[0])
        elif name == "target":
            x = int(x[0]) if len(x) == 1 else [int(v) for v in x[:2]]
        values[name] = x
    with numpy.errstate(all="ignore"):
        return function(**values)


def _result(stage, result, map):
    """Returns a result as a message and its bytes."""
    import numpy

    if stage["kind"] == "metric":
        x = numpy.asarray(result)
        if x.size != 1 or x.dtype.kind not in "fiub":
            raise TypeError("a metric returns one number, this is %s of the shape %s" % (x.dtype, list(x.shape)))
        x = x.astype("<f8").reshape(1)
    else:
        x = numpy.asarray(result)
        if x.dtype.kind not in "fiub":
            raise TypeError("a map has numbers, not %s" % x.dtype)
        if x.shape not in (map.shape, map.shape[-2:]):
            raise TypeError("the result has the shape %s, and the map %s" % (list(x.shape), list(map.shape)))
        x = numpy.ascontiguousarray(x, "<f8" if x.dtype == numpy.float64 else "<f4")
    return {"dtype": x.dtype.name, "shape": list(x.shape)}, x.data if x.size else b""


def _reason(e, folder):
    """Returns an exception as a text, after the line of the user's file that raised it."""
    at = ""
    for frame in traceback.extract_tb(e.__traceback__):
        if os.path.abspath(frame.filename).startswith(folder + os.sep):
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

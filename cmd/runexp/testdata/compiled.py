"""Loads a compiled file as its users do: onnx.checker, onnxruntime; prints names and shapes as JSON.

python3 compiled.py FILE ROWS
"""
import json
import sys

import numpy
import onnx
import onnxruntime

path, rows = sys.argv[1], int(sys.argv[2])
model = onnx.load(path)
onnx.checker.check_model(model, full_check=True)
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
draw = numpy.random.default_rng(1)
feed = {}
for i in session.get_inputs():
    shape = [rows if isinstance(d, str) else d for d in i.shape]
    if i.type == "tensor(int64)":
        feed[i.name] = numpy.arange(rows)
    else:
        feed[i.name] = draw.random(shape, dtype="float32")
results = dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
print(json.dumps({
    "domains": sorted({n.domain for n in model.graph.node}),
    "opset": [o.version for o in model.opset_import],
    "shapes": {name: list(v.shape) for name, v in results.items()},
    "finite": all(bool(numpy.isfinite(v).all()) for v in results.values()),
    "method": {p.key: p.value for p in model.metadata_props}["runexp.method"],
}))

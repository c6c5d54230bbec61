"""Uses the installed module as a notebook does, next to the quickstart in try/."""

import subprocess
import sys

import runexp_xai

for heavy in ("numpy", "pandas"):
    assert heavy not in sys.modules, heavy + " is imported before it's needed"

import numpy as np

flags = ("--limit", "4", "--only", "method=constant,saliency,random", "--only", "model=vgg,vit")
review = runexp_xai.run("try/quickstart.yaml", *flags)
tables = review.tables
assert list(tables["accuracies"].columns)[:2] == ["model", "mean"], tables["accuracies"]
assert set(tables["ranking"]["method"]) == {"constant", "saliency", "random"}, tables["ranking"]

mas = review.items["mas.difference"]
assert list(mas.columns) == ["method", "model", "item", "value"], mas.columns
assert len(mas) == 3 * 2 * 4, mas
ranked = tables["leaderboard.details"].query("metric == 'mas'").set_index(["model", "method"])["mean"]
for cell, values in mas.groupby(["model", "method"])["value"]:
    assert abs(values.mean() - ranked[cell]) < 1e-6, (cell, values, ranked[cell])

maps = review.maps("maps[method=saliency,model=vgg]")
ids = review.ids("maps[method=saliency,model=vgg]")
assert maps.shape == (4, 64, 64) and maps.dtype == np.float32, (maps.shape, maps.dtype)
assert len(ids) == 4 and maps.std() > 0, ids
again = runexp_xai.read(review.folder, "try/quickstart.yaml")
assert (again.tables["ranking"] == tables["ranking"]).all(axis=None)

# Maps made here are explained like any other method's: the same maps have the same scores.
runexp_xai.save_maps("try/mine", ids, maps)
with open("try/mine.yaml", "w") as f:
    f.write("""name: mine
axes:
  method:
    saliency: {uses: attribute/saliency}
    mine: {uses: attribute/external, with: {path: mine}}
stages:
  images: {uses: dataset/shapes, with: {count: 4, seed: 1000007}}
  model: {uses: model/onnx, with: {path: quickstart/vgg.onnx, preset: half}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  table: {uses: report/table, in: {values: mass}, over: all, with: {rows: [method]}}
publish: [table]
""")
means = runexp_xai.run("try/mine.yaml").tables["table"].set_index("method")["mean"]
assert means["mine"] == means["saliency"] > 0, means

try:
    runexp_xai.save_maps("try/mine", ["../out"], maps[:1])
    raise AssertionError("an id led out of the folder")
except ValueError:
    pass
try:
    runexp_xai.run("try/none.yaml")
    raise AssertionError("an experiment that isn't there ran")
except subprocess.CalledProcessError as e:
    assert "none.yaml" in str(e), e
print("all is well")

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
assert tables["details"].equals(tables["leaderboard.details"]), list(tables)
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
other = review.maps("maps[method=saliency,model=vgg]")
other += 1
assert (review.maps("maps[method=saliency,model=vgg]") == maps).all() and (other != maps).all(), "one array is in another"
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

# Pictures of an array are compared by methods and metrics of one's own; an edited call computes what is missing.
pictures = np.random.default_rng(1).integers(0, 256, (3, 70, 64, 3), np.uint8)
compared = runexp_xai.compare(
    "try/quickstart/vgg.onnx", pictures, ["saliency", "random"], {"gini": {"uses": "score/compactness", "port": "gini"}},
    "half", folder="try/compared")
details = compared.tables["details"]
assert set(details["method"]) == {"saliency", "random"} and set(details["metric"]) == {"gini"}, details
assert compared.answer.startswith("No answer: with 3 images"), compared.answer
assert "| saliency |" in compared._repr_markdown_() and "<svg" in compared.figures["sheet"]._repr_svg_(), compared
try:
    runexp_xai.compare("try/quickstart/vgg.onnx", pictures / 255, folder="try/compared")
    raise AssertionError("normalised pictures were taken")
except ValueError as e:
    assert "float64" in str(e), e
try:
    runexp_xai.export(None, None)
    raise AssertionError("there is torch")
except ModuleNotFoundError as e:
    assert "pip install torch" in str(e), e

try:
    runexp_xai.save_maps("try/mine", ["../out"], maps[:1])
    raise AssertionError("an id led out of the folder")
except ValueError:
    pass
try:
    runexp_xai.run("try/none.yaml")
    raise AssertionError("an experiment that isn't there ran")
except runexp_xai.RunError as e:
    assert isinstance(e, subprocess.CalledProcessError) and "none.yaml" in str(e), e

# A tokeniser of words; what it writes, dataset/tokens reads.
import types


class Words:
    pad_token_id, mask_token_id = 0, None

    def get_vocab(self):
        return {"[PAD]": 0, "good": 1, "film": 5}

    def __call__(self, text, truncation, max_length, return_special_tokens_mask):
        words = text.split(" ")[:max_length]
        starts = [sum(len(w) + 1 for w in words[:i]) for i in range(len(words))]
        return types.SimpleNamespace(encodings=[types.SimpleNamespace(
            ids=[self.get_vocab()[w] for w in words], tokens=words, offsets=[[s, s + len(w)] for s, w in zip(starts, words)],
            special_tokens_mask=[0] * len(words), type_ids=[0] * len(words), overflowing=text.split(" ")[len(words):])])


with open("try/texts.csv", "w") as f:
    f.write('id;text;stars;rationale\na;good film;4;"[[5, 9]]"\nb;film;0;\n')
with open("try/tokens.jsonl", "w") as f:
    assert runexp_xai.write_tokens(Words(), "try/texts.csv", f, length=2, label="stars") == 0
    assert runexp_xai.write_tokens(Words(), [{"text": "good film"}], open("try/cut.jsonl", "w"), length=1) == 1
with open("try/tokens.jsonl") as f:
    header, first, last = f.read().splitlines()
assert header == '{"pad": 0, "vocabulary": 6}', header
assert '"ids": [1, 5]' in first and '"label": "4", "rationale": [[5, 9]]' in first and "rationale" not in last, first
with open("try/texts.yaml", "w") as f:
    f.write("""name: texts
stages:
  texts: {uses: dataset/tokens, with: {path: tokens.jsonl}}
publish: [texts]
""")
tokens = runexp_xai.read(runexp_xai.run("try/texts.yaml").folder, "try/texts.yaml").maps("texts")
assert [t[0].tolist() for t in tokens] == [[1, 5], [5]], tokens
try:
    runexp_xai.write_tokens("none", [], None)
    raise AssertionError("there is transformers")
except ImportError as e:
    assert "pip install transformers" in str(e), e
made = subprocess.run([sys.executable, "-m", "runexp_xai", "tokens", "none", "try/texts.csv"], capture_output=True, text=True)
assert made.returncode == 1 and made.stderr.startswith("tokens: ") and "pip install transformers" in made.stderr, made
made = subprocess.run([sys.executable, "-m", "runexp_xai"], capture_output=True, text=True)
assert made.returncode == 1 and made.stderr.startswith("usage: python -m runexp_xai tokens MODEL TEXTS"), made
print("all is well")

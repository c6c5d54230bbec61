"""What the module does without further packages, next to the quickstart's nets in $NETS."""

import os
import sys
import tempfile
import unittest
from unittest import mock

import runexp_xai

EXPERIMENT = """name: two
axes:
  method:
    saliency: {uses: attribute/saliency}
    cam: {uses: attribute/layer-cam, with: {layer: "%s"}}
stages:
  images: {uses: dataset/shapes, with: {count: 4}}
  model: {uses: model/onnx, with: {path: %s/vgg.onnx, preset: half}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  curves: {uses: perturb/ablation, in: {model: model, images: images, maps: maps}, with: {steps: 8}}
  auc: {uses: score/auc, in: {curves: curves}}
  ranking: {uses: report/leaderboard, in: {scores: auc}, over: all, with: {rank: method}}
  sheet: {uses: report/sheet, in: {maps: maps, images: images}, over: [method], with: {items: 2, columns: method}}
publish: [ranking, sheet]
"""


class Folder(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def experiment(self, layer):
        with open("two.yaml", "w") as f:
            f.write(EXPERIMENT % (layer, os.environ["NETS"]))
        return "two.yaml"


class Errors(Folder):
    def test_failed_cell(self):
        with self.assertRaises(runexp_xai.RunError) as caught:
            runexp_xai.run(self.experiment("nowhere"))
        error = caught.exception
        self.assertEqual(list(error.failed), ["maps[method=cam]"])
        self.assertIn('layer "nowhere"', error.failed["maps[method=cam]"])
        self.assertIn("auc[method=cam]", error.blocked)
        first, second, third = str(error).splitlines()[:3]
        self.assertEqual(first, "runexp run two.yaml: 1 cell failed")
        self.assertEqual(second, "  maps[method=cam]: " + error.failed["maps[method=cam]"])
        self.assertEqual(third, "%d cells blocked, since they depend on these" % len(error.blocked))

    def test_wrong_experiment(self):
        with open("wrong.yaml", "w") as f:
            f.write("name: wrong\nstages:\n  images: {uses: dataset/shape}\npublish: [images]\n")
        with self.assertRaises(runexp_xai.RunError) as caught:
            runexp_xai.run("wrong.yaml")
        self.assertRegex(str(caught.exception), r"^runexp run: exit code 2\n[^\n]*wrong.yaml:3:\d+: .*dataset/shape")
        self.assertEqual(caught.exception.failed, {})

    def test_failed_cell_of_maps(self):
        review = runexp_xai.Review(self.folder_without_run(), self.experiment("nowhere"))
        with self.modules(numpy=mock.MagicMock(), pandas=mock.MagicMock()):
            with self.assertRaisesRegex(runexp_xai.RunError, r'maps\[method=cam\]: failed: layer "nowhere"'):
                review.maps("maps[method=cam]")

    def test_without_packages(self):
        review = runexp_xai.Review(self.folder_without_run(), "two.yaml")
        with self.modules(numpy=None, pandas=None):
            for read in (lambda: review.tables, lambda: review.items, lambda: review.maps("maps"),
                         lambda: runexp_xai.save_maps("mine", [], [])):
                with self.assertRaisesRegex(ModuleNotFoundError, r"pip install 'runexp-xai\[notebook\]'"):
                    read()

    def folder_without_run(self):
        os.makedirs("folder", exist_ok=True)
        with open("folder/README.md", "w") as f:
            f.write("# none\n")
        return "folder"

    def modules(self, **found):
        return mock.patch.dict(sys.modules, found)


class Shown(Folder):
    def test_review(self):
        review = runexp_xai.run(self.experiment("final"))
        with open(os.path.join(review.folder, "README.md")) as f:
            readme = f.read()
        self.assertGreater(len(review.answer), 100)
        self.assertNotIn("**", review.answer)
        self.assertNotIn("<!--", review.answer)
        self.assertIn(review.answer[:60], readme.replace("**", ""))

        shown = review._repr_markdown_()
        self.assertTrue(shown.startswith("# two\n"), shown)
        self.assertRegex(shown, r"\n\| method \| .*\n\| :-- \|(.*\n)*\| saliency \|")
        self.assertIn("](artifacts/two/tables/ranking.leaderboard.csv)", shown)
        for hidden in ("<!--", "<details", "## sheet", "How to reproduce"):
            self.assertNotIn(hidden, shown)

        self.assertEqual(list(review.figures), ["sheet"])
        self.assertIn("<svg", review.figures["sheet"]._repr_svg_())
        with self.assertRaisesRegex(KeyError, "no figure is called 'maps': there are sheet"):
            review.figures["maps"]

    def test_failure_is_shown(self):
        os.mkdir("folder")
        with open("folder/README.md", "w") as f:
            f.write("# two\n\n<!-- text ranking answer -->\n**lay\\_er** is first.\n<!-- end of text -->\n\n"
                    "> **Failed** (1 cell): `maps[method=cam]`\n\n## ranking\n\nNothing.\n\n## other\n\n| a |\n| - |\n")
        review = runexp_xai.read("folder")
        self.assertEqual(review.answer, "lay_er is first.")
        self.assertIn("> **Failed** (1 cell)", review._repr_markdown_())
        self.assertIn("## other\n\n| a |", review._repr_markdown_())
        self.assertNotIn("Nothing", review._repr_markdown_())

    def test_names(self):
        named = runexp_xai.review._Named("table", {"ranking.leaderboard": 1, "a.details": 2, "b.details": 3})
        self.assertEqual(named["leaderboard"], 1)
        with self.assertRaisesRegex(KeyError, "several tables end in 'details': there are a.details, b.details"):
            named["details"]
        with self.assertRaisesRegex(KeyError, "no table is called 'board': there are ranking.leaderboard, a.details"):
            named["board"]
        self.assertNotIn("leaderboard", named)


if __name__ == "__main__":
    unittest.main()

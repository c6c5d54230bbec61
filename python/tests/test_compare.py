"""runexp_xai.compare on the quickstart's nets in $NETS."""

import os
import unittest

import runexp_xai

from test_review import Folder

NET = os.path.join(os.environ["NETS"], "vgg.onnx")


class Compare(Folder):
    def setUp(self):
        super().setUp()
        os.mkdir("photos")
        for number, size in enumerate((40, 64)):
            rows = bytes((x * y * (number + 2)) % 251 for y in range(size) for x in range(size * 3))
            with open("photos/%d.png" % number, "wb") as f:
                f.write(runexp_xai.comparing._png(Rows(rows, size)))

    def test_methods_and_metrics(self):
        made = {"few": {"uses": "attribute/rise", "with": {"masks": 20, "cells": 4}}, "saliency": None, "lime": None}
        metrics = {"mas": None, "compact": {"uses": "score/compactness", "port": "gini"}}
        review = runexp_xai.compare(NET, "photos", made, metrics, "half", folder="here/vgg")
        with open("here/vgg/vgg.yaml") as f:
            text = f.read()
        self.assertIn("saliency\": {uses: attribute/saliency, with: {reduce: abs-sum}}", text)
        self.assertIn('preset: "half"', text)
        self.assertNotIn("rise-score", text)
        self.assertNotIn(".compare-", text)
        with open(os.path.join(review.folder, "tables", "leaderboard.csv")) as f:
            head, *rows = f.read().splitlines()
        self.assertEqual(sorted(row.split(",")[0] for row in rows), ["few", "lime", "saliency"])
        self.assertIn("mas", head)
        self.assertIn("compact", head)
        self.assertIn("No answer: with 2 images", review.answer)
        before = os.stat("here/vgg/vgg.yaml").st_ino
        again = runexp_xai.compare(NET, "photos", made, metrics, "half", folder="here/vgg")
        self.assertEqual(again.answer, review.answer)
        self.assertNotEqual(os.stat("here/vgg/vgg.yaml").st_ino, before)
        self.assertEqual(os.listdir("here"), ["vgg"])
        self.assertEqual(review.folder, os.path.abspath("here/vgg/review"))

        other = runexp_xai.compare(NET, "photos", made, metrics, "imagenet", folder="here/vgg", flags=("--quiet",))
        self.assertEqual(other.folder, review.folder)
        with open(os.path.join(review.folder, "tables", "leaderboard.csv")) as f:
            self.assertNotEqual(f.read().splitlines(), [head, *rows])

    def test_own_metric_alone(self):
        metrics = {"compact": {"uses": "score/compactness", "port": "gini"}}
        review = runexp_xai.compare(NET, "photos", ["saliency", "random"], metrics, "half")
        with open("vgg/vgg.yaml") as f:
            text = f.read()
        for stage in ("insertion", "deletion", "mas", "rise-score"):
            self.assertNotIn("\n  %s:" % stage, text)
        self.assertTrue(review.figures)

    def test_refused(self):
        with self.assertRaisesRegex(runexp_xai.RunError, "attribute/salience"):
            runexp_xai.compare(NET, "photos", ["salience"], preset="half")
        with self.assertRaisesRegex(ValueError, "no metric 'road' is wired here: there are rise, mas"):
            runexp_xai.compare(NET, "photos", metrics=["road"])
        with self.assertRaisesRegex(TypeError, r"methods is a text: \['lrp'\] is a list with it"):
            runexp_xai.compare(NET, "photos", methods="lrp")
        with self.assertRaisesRegex(runexp_xai.RunError, "runexp new"):
            runexp_xai.compare("none.onnx", "photos")
        with self.assertRaisesRegex(TypeError, "needs example"):
            runexp_xai.compare(object(), "photos")
        os.makedirs("mine")
        with open("mine/vgg.yaml", "w") as f:
            f.write("name: mine\n")
        with self.assertRaisesRegex(FileExistsError, "mine/vgg.yaml isn't of compare: name another folder"):
            runexp_xai.compare(NET, "photos", folder="mine")
        with open("mine/vgg.yaml") as f:
            self.assertEqual(f.read(), "name: mine\n")
        self.assertFalse([name for name in os.listdir(".") if name.startswith(".compare-")])


class Rows(list):
    """A picture's rows of bytes, of which _png reads as of an array."""

    def __init__(self, pixels, size):
        super().__init__(memoryview(pixels[i : i + 3 * size]) for i in range(0, len(pixels), 3 * size))
        self.shape = (size, size, 3)


if __name__ == "__main__":
    unittest.main()

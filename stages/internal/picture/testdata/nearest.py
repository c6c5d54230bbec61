"""Writes nearest.json: a mask resized by Pillow's NEAREST to several sizes.

    pip install pillow numpy && python nearest.py
"""
import json

import numpy as np
from PIL import Image

mask = np.random.default_rng(3).integers(0, 256, (23, 17)).astype(np.uint8)
out = {"w": 17, "h": 23, "pixels": mask.flatten().tolist(), "resized": []}
for w, h in [(17, 23), (9, 12), (34, 46), (5, 40), (40, 5), (1, 1), (16, 22), (224, 7)]:
    m = np.asarray(Image.fromarray(mask).resize((w, h), Image.NEAREST))
    out["resized"].append({"w": w, "h": h, "pixels": m.flatten().tolist()})
json.dump(out, open("nearest.json", "w"))

"""Writes coco.json, annotations of every kind in COCO's format, and coco.masks.json, what pycocotools 2.0 makes
of them: for every annotation its mask in run lengths, column by column.

    pip install pycocotools numpy && python coco.py
"""
import json
import math
import random

import numpy as np
from pycocotools import mask as api
from pycocotools.coco import COCO

random.seed(7)


def runs(mask):
    flat = mask.flatten(order="F")
    ends = np.flatnonzero(np.diff(flat)) + 1
    counts = np.diff(np.concatenate([[0], ends, [flat.size]])).tolist()
    return ([0] if flat[0] else []) + [int(n) for n in counts]


def star(w, h, spread):
    """corners around a centre, which may lie outside"""
    cx, cy = random.uniform(-0.2, 1.2) * w, random.uniform(-0.2, 1.2) * h
    n = random.randint(3, 12)
    angles = sorted(random.uniform(0, 2 * math.pi) for _ in range(n))
    out = []
    for a in angles:
        r = random.uniform(0.1, spread) * min(w, h)
        out += [round(cx + r * math.cos(a), 2), round(cy + r * math.sin(a), 2)]
    return out


def tangled(w, h):
    """corners in any order, some twice, on whole and half pixels"""
    out = []
    for _ in range(random.randint(3, 8)):
        corner = [random.randint(-2, 2 * w + 2) / 2, random.randint(-2, 2 * h + 2) / 2]
        out += corner * random.choice([1, 1, 2])
    return out


def noise(w, h):
    m = np.array([[random.random() < 0.4 for _ in range(w)] for _ in range(h)], dtype=np.uint8)
    return np.asfortranarray(m)


def blob(w, h):
    y, x = np.mgrid[:h, :w]
    r = random.uniform(0.1, 0.6) * min(w, h)
    return np.asfortranarray(((x - w / 2) ** 2 + (y - h / 3) ** 2 < r * r).astype(np.uint8))


def compressed(m):
    r = api.encode(m)
    return {"size": list(r["size"]), "counts": r["counts"].decode()}


images, annotations = [], []
for k in range(8):
    w, h = random.randint(1, 60), random.randint(1, 60)
    if k == 0:
        w, h = 640, 426
    images.append({"id": 100 + k, "file_name": f"img{k}.jpg", "width": w, "height": h})
    regions = [
        ([star(w, h, 0.5)], 0),
        ([star(w, h, 0.9), star(w, h, 0.3)], 0),
        ([tangled(w, h)], 0),
        ([tangled(w, h)], 0),
        ([star(w, h, 2)], 1),
        ({"size": [h, w], "counts": runs(noise(w, h) if k else blob(w, h))}, 1),
        (compressed(blob(w, h)), 1),
        (compressed(noise(w, h) if k else blob(w, h)), 0),
        ({"size": [h, w], "counts": [w * h]}, 1),
    ]
    for s, crowd in regions:
        annotations.append({
            "id": 1000 + len(annotations), "image_id": 100 + k, "category_id": 1 + len(annotations) % 3,
            "iscrowd": crowd, "segmentation": s, "area": 1,
            "bbox": [round(random.uniform(0, w), 2), round(random.uniform(0, h), 2),
                     round(random.uniform(0, 9), 2), round(random.uniform(0, 9), 2)],
        })
random.shuffle(annotations)
json.dump({
    "info": {"description": "generated", "nested": [{"a": [1, 2]}]}, "licenses": [],
    "images": images, "annotations": annotations,
    "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "kite"}],
}, open("coco.json", "w"))

coco = COCO("coco.json")
masks = {}
for a in coco.dataset["annotations"]:
    masks[a["id"]] = runs(coco.annToMask(a))
json.dump(masks, open("coco.masks.json", "w"))

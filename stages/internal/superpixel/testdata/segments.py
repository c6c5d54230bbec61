"""Makes segments.npz with scikit-image 0.26.0: images and their segments.

pip install scikit-image==0.26.0 numpy==2.4.6

Felzenszwalb's edges of equal cost have no order in NumPy's default sort, and get another one on processors with
AVX-512 than on others: here they keep theirs. Quickshift's draws are those of Draws instead of a generator's, so
that they can be repeated.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import skimage
from PIL import Image
from skimage import data
from skimage.segmentation import felzenszwalb, quickshift, slic

assert skimage.__version__ == "0.26.0"
argsort = np.argsort
np.argsort = lambda a: argsort(a, kind="stable")


class Draws(np.random.Generator):
    def normal(self, scale, size):
        k = np.arange(np.prod(size))
        return scale * ((k * 7919 % 1009) / 504.5 - 1).reshape(size)


np.random.default_rng = lambda seed: Draws(np.random.PCG64(seed))

SLIC = [dict(), dict(n_segments=7), dict(n_segments=40, compactness=1), dict(n_segments=25, sigma=1.5),
        dict(n_segments=30, max_num_iter=3, min_size_factor=0.2, max_size_factor=1.5)]
FELZENSZWALB = [dict(), dict(scale=100), dict(scale=50, sigma=0), dict(scale=200, sigma=1.3, min_size=5)]
QUICKSHIFT = [dict(), dict(kernel_size=4, max_dist=200, ratio=0.2), dict(kernel_size=2, sigma=1)]


def images():
    rng = np.random.Generator(np.random.PCG64(7))
    photo = data.astronaut()
    yield "photo", photo[20:97, 180:271]
    yield "odd", photo[100:133, 150:203]
    yield "row", photo[60:61, 100:201]
    yield "column", photo[100:191, 230:231]
    yield "thin", photo[60:63, 150:221]
    yield "two", photo[60:62, 200:202]
    yield "pixel", photo[60:61, 200:201]
    yield "grey", photo[20:73, 190:243, 1:2]
    yield "grey-row", photo[60:61, 100:165, :1]
    yield "flat", np.full((23, 31, 3), 90, np.uint8)
    yield "flat-grey", np.full((17, 12, 1), 200, np.uint8)
    yield "black", np.zeros((16, 16, 3), np.uint8)
    yield "noise", rng.integers(0, 256, (29, 37, 3), np.uint8)
    drawn = np.full((40, 56, 3), 255, np.uint8)
    drawn[5:22, 8:30] = 200, 30, 40
    drawn[15:35, 25:50] = 20, 60, 180
    yield "drawing", drawn
    yield "normalised", ((photo[100:140, 190:241] / 255 - 0.45) / 0.225).astype(np.float32)
    yield "negative-grey", ((photo[100:140, 190:241, :1] / 255 - 0.45) / 0.225).astype(np.float32)


def segments(image):
    if image.dtype != np.uint8:
        image = image.astype(np.float64)
    for k, p in enumerate(SLIC):
        yield f"slic{k}", slic(image, start_label=0, channel_axis=-1, **p)
    for k, p in enumerate(FELZENSZWALB):
        yield f"felzenszwalb{k}", felzenszwalb(image, channel_axis=-1, **p)
    for k, p in enumerate(QUICKSHIFT):
        yield f"quickshift{k}", quickshift(image, channel_axis=-1, convert2lab=image.shape[-1] == 3, **p)


def smallest(labels):
    return labels.astype(np.uint8 if labels.max() < 256 else np.uint16 if labels.max() < 65536 else np.uint32)


def main():
    arrays = {}
    for name, image in images():
        arrays[name] = np.moveaxis(image, -1, 0)
        for what, labels in segments(image):
            arrays[f"{name}.{what}"] = smallest(labels)
    here = Path(__file__).parent
    np.savez_compressed(here / "segments.npz", **arrays)
    if len(sys.argv) > 1:  # a folder of photographs, whose segments are hashed
        digests = {}
        for path in sorted(Path(sys.argv[1]).glob("*.JPEG"))[:24]:
            image = np.asarray(Image.open(path).convert("RGB"))
            for what, labels in segments(image[:180, :240]):
                if what in ("slic0", "slic2", "felzenszwalb0", "felzenszwalb1", "quickshift1"):
                    digests.setdefault(path.name, {})[what] = hashlib.sha256(
                        labels.astype("<u4").tobytes()).hexdigest()[:16]
        (here / "photographs.json").write_text(json.dumps(digests, indent=1) + "\n")


main()

"""Makes xrai.npz with PAIR's saliency 0.2.1 and scikit-image 0.26.0: the regions of XRAI, full and fast, and their
values, of a photograph cut and repeated to several sizes, with given attributions.

pip install saliency==0.2.1 scikit-image==0.26.0 numpy==2.4.6

Felzenszwalb's edges of equal cost keep their order here, which NumPy's default sort leaves to the processor.
"""

from pathlib import Path

import numpy as np
from saliency.core import xrai

argsort = np.argsort
np.argsort = lambda a: argsort(a, kind="stable")
here = Path(__file__).parent
photo = np.moveaxis(np.load(here / "../../internal/superpixel/testdata/segments.npz")["photo"], 0, -1)
tiles = np.tile(photo, (3, 4, 1))
arrays = {}
for height, width in [(224, 224), (64, 64), (77, 91), (150, 260)]:
    image = tiles[:height, :width] / 255
    y, x, c = np.mgrid[:height, :width, :3]
    attribution = (((x * x + 3 * y * (c + 1)) // 40 % 257) + (x * 7919 + y * 104729 + c * 1299709) % 101 - 150) / 64
    for algorithm in ("full", "fast"):
        parameters = xrai.XRAIParameters(algorithm=algorithm, return_xrai_segments=True)
        out = xrai.XRAI().GetMaskWithDetails(image, None, base_attribution=attribution, extra_parameters=parameters)
        values = np.zeros(out.segments.max())
        for k in range(len(values)):
            values[k] = out.attribution_mask[out.segments == k + 1][0]
        arrays[f"{height}x{width}.{algorithm}.regions"] = out.segments.astype(np.uint16)
        arrays[f"{height}x{width}.{algorithm}.values"] = values
np.savez_compressed(here / "xrai.npz", **arrays)

"""Prints the least milliseconds of scikit-image for what BenchmarkSegments measures: times.py PHOTOGRAPH."""

import sys
import time

import numpy as np
from PIL import Image
from skimage.segmentation import felzenszwalb, quickshift, slic

image = np.asarray(Image.open(sys.argv[1]).convert("RGB"))[:224, :224]
for name, make in {
    "slic0": lambda: slic(image, start_label=0),
    "felzenszwalb1": lambda: felzenszwalb(image, scale=100),
    "quickshift1": lambda: quickshift(image, kernel_size=4, max_dist=200, ratio=0.2),
}.items():
    if len(sys.argv) > 2 and sys.argv[2] not in name:
        continue
    times = []
    for _ in range(25):
        start = time.perf_counter()
        make()
        times.append(time.perf_counter() - start)
    print(f"{name}: {1000 * min(times):.1f} ms")

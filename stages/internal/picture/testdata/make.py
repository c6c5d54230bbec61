"""Writes the image files of this folder and, as x.rgb.png, what Pillow makes of them.

pip install pillow numpy; python make.py. Made with Pillow 12.3.0, libjpeg-turbo 3.1.4.

Pillow 13 resizes columns first where the height shrinks far more than the width,
and then differs by a level or two; the order here is that of all versions before.
"""
import io

import numpy as np
from PIL import Image

rng = np.random.default_rng(1)


def scene(w, h):
    """Smooth colours, a hard edge and some noise."""
    y, x = np.mgrid[0:h, 0:w].astype(float)
    a = np.stack([127 + 120 * np.sin(x / 5 + y / 9), 255 * (x > y), 200 * np.cos(x * y / 60) ** 2], -1)
    return Image.fromarray(np.clip(a + rng.normal(0, 12, a.shape), 0, 255).astype(np.uint8))


def keep(name, data):
    open(name, "wb").write(data)
    Image.open(io.BytesIO(data)).convert("RGB").save(name + ".rgb.png", optimize=True)


def save(name, image, **options):
    f = io.BytesIO()
    image.save(f, name.split(".")[-1].replace("jpg", "jpeg").replace("tif", "tiff"), **options)
    keep(name, f.getvalue())
    return f.getvalue()


photo = scene(37, 29)
save("444.jpg", photo, subsampling=0, quality=90)
save("422.jpg", photo, subsampling=1, quality=85)
save("420.jpg", photo, subsampling=2, quality=60)
save("420-coarse.jpg", photo, subsampling=2, quality=5)
save("progressive.jpg", photo, subsampling=2, quality=80, progressive=True)
save("restart.jpg", photo, subsampling=2, quality=80, restart_marker_blocks=2)
save("restart-progressive.jpg", photo, quality=80, progressive=True, restart_marker_blocks=3)
save("rgb.jpg", photo, keep_rgb=True, quality=80)
save("grey.jpg", photo.convert("L"), quality=80)
save("1x1.jpg", scene(1, 1), subsampling=2)
save("4x3.jpg", scene(4, 3), subsampling=2)
save("5x6.jpg", scene(5, 6), subsampling=2)
cmyk = save("cmyk.jpg", photo.convert("CMYK"), quality=80)
at = cmyk.index(b"Adobe") + 11
keep("ycck.jpg", cmyk[:at] + b"\x02" + cmyk[at + 1:])
# The blocks of a 16×16 image at 4:2:2 are also those of another one at 4:4:0.
b = save("422-square.jpg", scene(16, 16), subsampling=1)
at = b.index(b"\xff\xc0") + 11
keep("440.jpg", b[:at] + b"\x12" + b[at + 1:])

save("lossy.webp", photo, quality=70)
save("lossy-even.webp", scene(18, 14), quality=90)
save("lossless.webp", photo, lossless=True)
alpha = photo.copy()
alpha.putalpha(Image.fromarray(rng.integers(1, 256, (29, 37)).astype(np.uint8)))
save("alpha.webp", alpha, lossless=True, exact=True)
save("alpha.png", alpha)
save("paletted.png", photo.quantize(9))
save("bit.png", photo.convert("1"))
save("24.bmp", photo)
save("8.bmp", photo.convert("L"))

# Resizing: one source, a few sizes, both filters.
source = Image.open("444.jpg.rgb.png")
for w, h in [(37, 11), (13, 29), (64, 50), (9, 7), (1, 1), (120, 3)]:
    for name in ["bilinear", "bicubic"]:
        source.resize((w, h), getattr(Image, name.upper())).save(f"resize-{name}-{w}x{h}.png", optimize=True)

# TIFF in its compressions and colours. These were made with Pillow 13.0.0.
y, x = np.mgrid[:13, :17]
small = np.stack([x * 15 % 256, y * 19 % 256, x * y % 256], -1).astype(np.uint8)
small[3:6, 4:9] = np.random.default_rng(7).integers(0, 256, (3, 5, 3))
small = Image.fromarray(small)
veil = small.convert("RGBA")
veil.putalpha(Image.fromarray((x * 15 % 256).astype(np.uint8)))
save("tiff-lzw.tif", small, compression="tiff_lzw")
save("tiff-predictor.tif", small, compression="tiff_lzw", tiffinfo={317: 2})
save("tiff-deflate.tif", small.convert("L"), compression="tiff_adobe_deflate")
save("tiff-packbits.tif", small, compression="packbits")
save("tiff-palette.tif", small.quantize(16))
save("tiff-alpha.tif", veil)
save("tiff-bilevel.tif", small.convert("1"))

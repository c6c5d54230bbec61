"""Checks what a function returns, and makes of it what runexp stores."""

# By kind: the argument whose size the result has, which every function of the kind reads.
OF = {"metric": "map", "maps": "map", "attribute": "image", "segments": "image"}

NUMBERS = "fiub"  # NumPy's kinds of types that are numbers


def result(kind, value, of):
    """Returns the result of a function of a kind as an array. of is the image or map that it is of."""
    import numpy

    return KINDS[kind](numpy, numpy.asarray(value), of.shape)


def _metric(numpy, x, of):
    if x.size != 1 or x.dtype.kind not in NUMBERS:
        raise TypeError("a metric returns one number, this is %s of the shape %s" % (x.dtype, list(x.shape)))
    return x.astype("<f8").reshape(1)


def _maps(numpy, x, of):
    return _map(numpy, x, (of, of[-2:]), "the map %s" % list(of))


def _attribute(numpy, x, of):
    size = of[-2:]
    return _map(numpy, x, (size, (1,) + size, (3,) + size), "the image %s" % list(of))


def _map(numpy, x, shapes, of):
    if x.dtype.kind not in NUMBERS:
        raise TypeError("a map has numbers, not %s" % x.dtype)
    if x.shape not in shapes:
        raise TypeError("the result has the shape %s, and %s" % (list(x.shape), of))
    return numpy.ascontiguousarray(x, "<f8" if x.dtype == numpy.float64 else "<f4")


def _segments(numpy, x, of):
    if x.dtype.kind not in "iub":
        raise TypeError("segments have integers, as astype(int) makes them, not %s" % x.dtype)
    if x.shape != of[-2:]:
        raise TypeError("the result has the shape %s, and the image %s" % (list(x.shape), list(of)))
    if x.size and (x.min() < 0 or x.max() > 2**32 - 1):
        raise TypeError("segments have numbers from 0 to 2^32 - 1, not %d to %d" % (x.min(), x.max()))
    return numpy.ascontiguousarray(x, "<u4")


KINDS = {"metric": _metric, "maps": _maps, "attribute": _attribute, "segments": _segments}

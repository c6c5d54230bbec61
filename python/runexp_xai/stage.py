"""Makes a function of NumPy arrays a stage of an experiment: uses: metrics.py:my_metric.

    from runexp_xai.stage import metric

    @metric(version=1, direction="higher", low=0, high=1)
    def gini(map):
        a = np.sort(np.abs(map).ravel())
        ...

The function is called once an item. It reads what it has parameters for, by these names:

    map      float [H,W] or [C,H,W]     image    float32 [3,H,W] in [0,1]
    mask     uint8 [H,W]                segments integers [H,W]
    label    int                        target   int, the explained class; [a, b] explains a minus b
    model    runexp_xai.model.Model     rng      numpy.random.Generator, seeded by the experiment's seed and
                                                 the item alone

All other parameters need a default, and are the stage's parameters. A result depends on these and on the
function's code alone: what it reads beside them is named in files and packages, or a change of it goes
unnoticed. All decorators take, by these names,

    version    to be raised when the same code gives other results
    files      what the function reads, beside its file
    packages   what it imports, whose versions count
    seconds    how long one call may take: 60
    memory     how many GB its process may allocate once the file is imported, on Linux: 8
"""

import math

__all__ = ["attribute", "maps", "metric", "segments"]


def metric(version=1, direction="higher", unit="", low=None, high=None, **options):
    """Makes a function a metric: it returns a number, NaN where the score is undefined. It isn't asked of a
    map that has values which are not numbers: that score is undefined.

    direction: higher, lower or none, which is better. low, high: the range of the scores, unbounded by
    default.
    """
    low, high = _end(low, -math.inf), _end(high, math.inf)
    return _stage("metric", dict(direction=direction, unit=unit, low=low, high=high), version, **options)


def maps(version=1, **options):
    """Makes a function one of maps: it returns a map, [H,W] or of the shape of the map that it reads."""
    return _stage("maps", {}, version, **options)


def attribute(version=1, **options):
    """Makes a function an attribution method: it returns the map of an image, [H,W], or [C,H,W] of 1 or 3
    channels. It stands on an axis of methods: model, images, targets and labels may be wired whether it
    reads them or not, and the predicted class is explained where no targets are.
    """
    return _stage("attribute", {}, version, **options)


def segments(version=1, **options):
    """Makes a function one that divides images into segments: it returns integers [H,W], the number of each
    pixel's segment.
    """
    return _stage("segments", {}, version, **options)


def _end(x, without):
    """Returns an end of a range, None for the infinite one."""
    if x is None or x == without:
        return None
    if not math.isfinite(x):
        raise ValueError("an end of the range of scores is %r" % x)
    return x


def _stage(kind, facts, version, files=(), packages=(), seconds=60, memory=8):
    for name, value in ("seconds", seconds), ("memory", memory):
        if not 0 < value <= 1e9:
            raise ValueError("%s is %r, and must be a number above 0, at most 1e9" % (name, value))

    def mark(function):
        function.runexp_stage = dict(
            kind=kind, version=version, files=list(files), packages=list(packages), seconds=seconds, **facts
        )
        function.runexp_memory = memory  # apart: a limit decides no result
        return function

    return mark

"""Times of functions relative to others, on a machine that also does other things."""

import time


def multiple(run, bare, least=5, seconds=2.0):
    """Returns the time of the fastest call of run by that of bare, called in turns."""
    fastest, spent, calls = [float("inf")] * 2, 0, 0
    while calls < least or spent < seconds and calls < 300:
        for i, f in enumerate((run, bare)):
            start = time.perf_counter()
            f()
            took = time.perf_counter() - start
            fastest[i], spent = min(fastest[i], took), spent + took
        calls += 1
    return fastest[0] / fastest[1]

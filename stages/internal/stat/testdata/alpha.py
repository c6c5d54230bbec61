"""Writes krippendorff.json: the alpha of some tables by the package krippendorff 0.9.0.

pip install krippendorff==0.9.0 numpy; python alpha.py. Rows are units, columns raters, null a missing value.
"""
import json
import pathlib

import krippendorff
import numpy as np

random = np.random.default_rng(5)


def case(name, values, missing=0.0):
    values = np.array(values, dtype=float)
    values[random.random(values.shape) < missing] = np.nan
    return {
        "name": name,
        "units": [[None if np.isnan(v) else float(v) for v in row] for row in values],
        **{level: krippendorff.alpha(reliability_data=values.T, level_of_measurement=level)
           for level in ("nominal", "ordinal", "interval")},
    }


rankings = [list(random.permutation(4) + 1) for _ in range(30)]
cases = [
    case("rankings", np.array(rankings).T),
    case("rankings with missing", np.array(rankings).T, 0.2),
    case("agreement with noise", [np.round(u + random.normal(0, 0.7, 5)) for u in range(12)]),
    case("agreement with missing", [np.round(u + random.normal(0, 0.7, 5)) for u in range(12)], 0.3),
    case("far from zero", [1e6 + np.round(random.normal(u, 1, 3), 2) for u in range(8)]),
    case("unequal counts", [[1, 1, 1, 1], [1, 1, 1, 2], [9, 9, 1, np.nan], [2, np.nan, np.nan, np.nan], [9, 9, 9, 9]]),
    case("disagreement", [[1, 2], [2, 1], [1, 2], [2, 1]]),
]
here = pathlib.Path(__file__).parent
(here / "krippendorff.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")

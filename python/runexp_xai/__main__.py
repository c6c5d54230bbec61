"""python -m runexp_xai tokens MODEL TEXTS: see tokens.py. The command runexp does all else."""

import sys

from . import tokens

if len(sys.argv) < 2 or sys.argv[1] != "tokens":
    sys.exit("usage: python -m runexp_xai tokens MODEL TEXTS [--length N] [--text COLUMN] [--label COLUMN]")
tokens.main(sys.argv[2:])

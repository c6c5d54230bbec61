"""Finds and starts the command."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from .errors import RunError


def command():
    """Returns the path of the command: the one installed with this module, or the first in PATH."""
    for scheme in (None, "posix_user"):
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        if os.access(os.path.join(folder, "runexp"), os.X_OK):
            return os.path.join(folder, "runexp")
    found = shutil.which("runexp")
    if not found:
        raise FileNotFoundError("the command runexp is neither in %s nor in PATH" % sysconfig.get_path("scripts"))
    return found


def call(*args):
    """Runs the command and returns what it prints."""
    done = subprocess.run([command(), *map(os.fspath, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RunError(done)
    return done.stdout


def follow(*args):
    """Runs the command with --json, counts its cells, and returns its last event."""
    args = [command(), *map(os.fspath, args), "--json"]
    lines, cells, event = [], _Cells(), {}
    with tempfile.TemporaryFile("w+") as messages:
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=messages, text=True) as process:
            try:
                for line in process.stdout:
                    lines.append(line)
                    event = json.loads(line)
                    cells.count(event)
            except BaseException:  # the command's first signal lets it finish what it computes, and keep it
                process.terminate()
                raise
            finally:
                cells.end()
        messages.seek(0)
        done = subprocess.CompletedProcess(args, process.returncode, "".join(lines), messages.read())
    if done.returncode:
        raise RunError(done, cells.failed, cells.blocked)
    sys.stderr.write(done.stderr)
    return event


class _Cells:
    """Keeps which cells failed, and counts the others in one line of stderr, where someone is looking."""

    def __init__(self):
        self.done = self.total = 0
        self.failed, self.blocked = {}, {}
        self.shown = sys.stderr.isatty() or "ipykernel" in sys.modules

    def count(self, event):
        kind = event["event"]
        if kind == "failed":
            self.failed[event["cell"]] = event.get("error") or event.get("reason", "")
        elif kind == "blocked":
            self.blocked[event["cell"]] = event.get("reason", "")
        elif kind == "planned":
            self.done, self.total = event["done"], event["total"]
        elif kind in ("done", "cached") and self.total:
            self.done += 1
        else:
            return
        if self.shown:
            print("\r%d of %d cells" % (self.done, self.total), end="", file=sys.stderr, flush=True)

    def end(self):
        if self.shown and self.total:
            print(file=sys.stderr)

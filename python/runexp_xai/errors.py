"""The errors that this package raises: each names the cell, file or argument, and the cause."""

import subprocess


class RunError(subprocess.CalledProcessError):
    """The command failed. Its text has the failed cells with their reasons, how many others were blocked, and the
    command's messages.

    failed maps cells to reasons; blocked maps cells that couldn't run to the failed cell that they depend on.
    """

    def __init__(self, done, failed=None, blocked=None):
        super().__init__(done.returncode, done.args, done.stdout, done.stderr)
        self.failed, self.blocked = dict(failed or {}), dict(blocked or {})

    def __str__(self):
        lines = ["runexp %s: exit code %d" % (self.cmd[1], self.returncode)]
        if self.failed:
            lines[0] = "runexp %s: %s failed" % (" ".join(self.cmd[1:3]), count(len(self.failed), "cell"))
            lines += ["  %s: %s" % pair for pair in self.failed.items()]
        if self.blocked:
            lines.append("%s blocked, since they depend on these" % count(len(self.blocked), "cell"))
        return "\n".join(lines + [self.stderr.rstrip()]).rstrip()


class ExportError(ValueError):
    """A net that can't be exported, or whose ONNX file doesn't give the net's answers."""


def needed(module, extra=None):
    """Imports a module that isn't installed with the command alone, or tells how to install it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        if e.name != module:
            raise
        how = "pip install 'runexp-xai[%s]'" % extra if extra else "pip install %s" % module
        raise ModuleNotFoundError("this needs %s: %s" % (module, how), name=module) from None


def count(n, noun):
    """Returns a number of things in words."""
    return "%d %s%s" % (n, noun, "" if n == 1 else "s")

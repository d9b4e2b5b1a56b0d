"""Where a visitor goes on after signing in: to a page of this console, and nowhere else."""

import re

from holdfast.console.visitor import PageHead

HOME = "/console"
# Printable ASCII without backslashes, which browsers read as slashes.
_OWN = re.compile(r"/console(?:[/?][!-\[\]-~]*)?", re.ASCII)
_CHARS_MAX = 2_000


def own_path(path: str) -> str:
    """A path of the console; the first page in place of whatever is none."""
    if len(path) > _CHARS_MAX or not _OWN.fullmatch(path):
        return HOME
    return HOME if path.startswith(("/console/sign-in", "/console/sign-out")) else path


def path_of(head: PageHead) -> str:
    """What was asked for, to come back to: only what was looked at, never what was sent."""
    if head.method not in ("GET", "HEAD"):
        return HOME
    return own_path(head.target)

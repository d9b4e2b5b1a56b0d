"""Prometheus' own checker of rules: from Debian's package, downloaded and not installed."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

_FOLDER = Path(sys.prefix) / "prometheus"
_SECONDS_MAX = 120


def promtool() -> str:
    """The path of promtool; the test is skipped, with the reason, where it cannot be had."""
    path = _FOLDER / "usr" / "bin" / "promtool"
    _FOLDER.mkdir(exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not path.exists():
            try:
                _download()
            except (OSError, subprocess.SubprocessError) as error:
                pytest.skip(f"promtool, of Debian's package prometheus, cannot be had: {error}")
    return str(path)


def _download() -> None:
    download = ["apt-get", "download", "-q", "prometheus"]
    try:
        _run(download)
    except subprocess.SubprocessError:
        if os.geteuid() != 0:
            raise
        _run(["apt-get", "update", "-qq"])  # a fresh machine knows no packages
        _run(download)
    for package in _FOLDER.glob("*.deb"):
        _run(["dpkg", "-x", str(package), str(_FOLDER)])
        package.unlink()


def _run(arguments: list[str]) -> None:
    subprocess.run(arguments, cwd=_FOLDER, check=True, capture_output=True, timeout=_SECONDS_MAX)

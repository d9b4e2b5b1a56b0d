"""Newer interpreters: what is installed beside ours is tried as far as it goes without packages."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NAME = re.compile(r"python3\.(\d+)")
# Without its packages an interpreter can still read the code: whatever it warns of is a fault. All
# in one process, for that is what takes the time.
_COMPILE = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("error")
for path in Path(sys.argv[1]).rglob("*.py"):
    compile(path.read_text(), str(path), "exec")
"""


def _newest() -> Path | None:
    """The newest interpreter on the PATH or beside ours (pyenv) that is newer than ours."""
    beside = Path(sys.base_prefix).parent.glob("*/bin")
    places = [*map(Path, os.environ["PATH"].split(os.pathsep)), *beside]
    found: list[tuple[int, Path]] = []
    for command in (path for place in places if place.is_dir() for path in place.iterdir()):
        name = _NAME.fullmatch(command.name)
        if name is not None and int(name.group(1)) > sys.version_info.minor:
            found.append((int(name.group(1)), command))
    ranked = (command for _, command in sorted(found, reverse=True))
    return next(filter(_runs, ranked), None)


def _runs(python: Path) -> bool:
    """pyenv has shims for versions that are not chosen."""
    return not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode


def test_the_newest_interpreter_reads_all_of_the_code_without_a_warning() -> None:
    newest = _newest()
    if newest is None:
        pytest.skip(f"there is no Python newer than {sys.version.split()[0]} on this machine")
    run = subprocess.run(
        [newest, "-c", _COMPILE, ROOT / "src"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"{newest}: {run.stderr}"


def test_this_interpreter_is_one_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if ":: 3." in each]
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in named
    assert project["requires-python"] == f">={named[0]}"

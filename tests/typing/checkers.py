"""Runs the two type checkers that users have, at their strictest, over files."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

_HERE = Path(__file__).parent
ROOT = _HERE.parents[1]
EXAMPLES = ROOT / "build" / "examples"
_COMMANDS = Path(sys.executable).parent
_SECONDS_MAX = 240.0


class Complaint(NamedTuple):
    """What a checker says of a line."""

    file: str
    line: int
    text: str


def mypy(files: Iterable[Path], path: Path = EXAMPLES) -> list[Complaint]:
    """What `mypy --strict` reports; files import each other from `path`."""
    config, cache = _HERE / "mypy.ini", ROOT / "build" / "mypy"
    options = [f"--config-file={config}", f"--cache-dir={cache}", "--output=json"]
    done = _run(["mypy", *options, *map(str, files)], path)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == (1 if lines else 0), done.stdout + done.stderr
    found = [json.loads(line) for line in lines]
    return [
        Complaint(Path(each["file"]).name, each["line"], each["message"])
        for each in found
        if each["severity"] == "error"
    ]


def pyright(files: Iterable[Path], mode: str = "strict", path: Path = EXAMPLES) -> list[Complaint]:
    """What pyright reports, as basedpyright brings it, in one of its modes."""
    settings = {
        "typeCheckingMode": mode,
        "pythonVersion": "3.11",
        "venvPath": str(ROOT),
        "venv": ".venv",
        "extraPaths": [str(ROOT / "src"), str(path)],
    }
    with NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(settings, config)
        config.flush()
        done = _run(["basedpyright", "-p", config.name, "--outputjson", *map(str, files)], path)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [
        Complaint(Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in found
        if each["severity"] == "error"
    ]


def _run(command: list[str], path: Path) -> subprocess.CompletedProcess[str]:
    (ROOT / "build").mkdir(exist_ok=True)
    return subprocess.run(
        [str(_COMMANDS / command[0]), *command[1:]], check=False, cwd=ROOT,
        capture_output=True, text=True, timeout=_SECONDS_MAX,
        env={**os.environ, "MYPYPATH": f"{ROOT / 'src'}:{path}"},
    )  # fmt: skip

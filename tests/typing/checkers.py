"""Runs the two type checkers that users have, at their strictest, over files."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_COMMANDS = Path(sys.executable).parent
_SECONDS_MAX = 240.0


class Complaint(NamedTuple):
    """What a checker says of a line."""

    file: str
    line: int
    text: str


def mypy(files: Iterable[Path]) -> list[Complaint]:
    """What `mypy --strict` reports."""
    done = _run(
        [
            str(_COMMANDS / "mypy"), "--strict", "--follow-imports=silent", "--no-pretty",
            "--no-error-summary", "--hide-error-context", "--output=json",
            f"--cache-dir={ROOT / 'build' / 'mypy'}", *map(str, files),
        ]
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == (1 if lines else 0), done.stdout + done.stderr
    found = [json.loads(line) for line in lines]
    return [
        Complaint(Path(each["file"]).name, each["line"], each["message"])
        for each in found
        if each["severity"] == "error"
    ]


def pyright(files: Iterable[Path]) -> list[Complaint]:
    """What pyright reports, as basedpyright brings it, in its mode "strict"."""
    config = ROOT / "tests" / "typing" / "pyright.json"
    done = _run(
        [str(_COMMANDS / "basedpyright"), "-p", str(config), "--outputjson", *map(str, files)]
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [
        Complaint(Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in found
        if each["severity"] == "error"
    ]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    (ROOT / "build").mkdir(exist_ok=True)
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=_SECONDS_MAX,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )  # fmt: skip

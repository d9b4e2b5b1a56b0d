"""Installs a peer on first use: exact versions, into a folder of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.harness import UnmeasurableError
from bench.places import PEERS

INSTALL_SECONDS_MAX = 600
SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/usr/sbin", "/usr/local/sbin")


def python_environment(name: str, requirements: Sequence[str]) -> Path:
    """The interpreter of a venv that holds exactly these requirements."""
    folder = PEERS / name
    python = folder / "bin" / "python"
    if not _installed(folder, requirements):
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)], f"making a venv for {name}")
        _run([str(python), "-m", "pip", "install", "--quiet", *requirements], f"installing {name}")
        _stamp(folder, requirements)
    return python


def node_modules(name: str, packages: Sequence[str]) -> Path:
    """The `node_modules` folder that holds exactly these packages."""
    folder = PEERS / name
    npm = command("npm")
    if not _installed(folder, packages):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund"]
        _run([*install, "--save-exact", "--ignore-scripts", *packages], f"installing {name}")
        _stamp(folder, packages)
    return folder / "node_modules"


def command(name: str, debian_package: str | None = None) -> str:
    """The path of a program, installed by apt-get if it is missing and a package is named."""
    found = _which(name)
    if found is None and debian_package is not None:
        _apt_install(debian_package)
        found = _which(name)
    if found is None:
        raise UnmeasurableError(
            f"expected the program {name}, found none; install it and run again"
        )
    return found


def _which(name: str) -> str | None:
    places = [*SYSTEM_FOLDERS, *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))


def _apt_install(package: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise UnmeasurableError(
            f"the Debian package {package} is missing and only root can install it"
        )
    # In runlevel 1 Debian's packages do not start the service that they bring.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", package]
    try:
        _run(install, f"installing {package}", environment)
    except UnmeasurableError:
        _run(["apt-get", "update", "-qq"], "reading the package lists", environment)
        _run(install, f"installing {package}", environment)


def _stamp(folder: Path, wanted: Sequence[str]) -> None:
    (folder / "installed").write_text("\n".join(wanted))


def _installed(folder: Path, wanted: Sequence[str]) -> bool:
    stamp = folder / "installed"
    return stamp.is_file() and stamp.read_text() == "\n".join(wanted)


def _run(arguments: list[str], doing: str, environment: dict[str, str] | None = None) -> None:
    try:
        subprocess.run(
            arguments,
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INSTALL_SECONDS_MAX,
            text=True,
        )
    except subprocess.CalledProcessError as failed:
        lines = [line for line in str(failed.stdout).splitlines() if line.strip()]
        raise UnmeasurableError(f"{doing} failed: {lines[-1] if lines else failed}") from failed
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise UnmeasurableError(f"{doing} failed: {failed}") from failed

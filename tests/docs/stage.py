"""A folder with a free port in which the examples of one document are run."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

from documents import Block

_DEFAULT_URL = "http://127.0.0.1:8080"  # as it stands in the documents
_WEB_PORTS = ("--port 8000", "127.0.0.1:8000")  # of a web application beside the node
_KEPT = "api task job instance HOLDFAST_TOKEN"  # the variables that the next block has, too
_SECONDS = 180.0  # Spark starts and works in one of them, on a machine that does other things too


class Stage:
    """Runs blocks one after another; what runs in the background is stopped at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = _free_port()
        self._url = f"http://127.0.0.1:{self._port}"
        self._web_port = str(_free_port())
        self._background: list[subprocess.Popen[str]] = []
        self._variables = folder.parent / f"{folder.name}.variables"

    def __enter__(self) -> "Stage":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.interrupt()

    def interrupt(self) -> str:
        """Stops what runs in the background, as Ctrl-C does, and returns what it printed."""
        printed: list[str] = []
        while self._background:
            process = self._background.pop()
            process.send_signal(signal.SIGINT)
            printed.append(process.communicate(timeout=_SECONDS)[0])
            assert process.returncode == 0, f"{process.args}\n{printed[-1]}"
        return "".join(printed)

    def python(self, text: str) -> str:
        """Runs a program and returns what it prints."""
        return self._run([sys.executable, "-c", text])

    def write(self, name: str, text: str) -> None:
        """Writes a file that the document asks for."""
        (self._folder / name).write_text(text)

    def shell(self, block: Block) -> str:
        """Runs commands and returns what they print; the next ones have the variables they set."""
        text = block.text.replace(_DEFAULT_URL, self._url)
        for each in _WEB_PORTS:
            text = text.replace(each, each.replace("8000", self._web_port))
        if block.background:
            return self._start(text)
        script = f"set -eo pipefail; touch {self._variables}; . {self._variables}\n{text}\n"
        keep = f"declare -p {_KEPT} 2>/dev/null > {self._variables} || true"
        return self._run(["bash", "-c", script + keep])

    def _start(self, command: str) -> str:
        process = subprocess.Popen(
            command.split(),
            cwd=self._folder, env=self._environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._background.append(process)
        assert process.stdout is not None
        watchdog = threading.Timer(_SECONDS, process.kill)
        watchdog.start()
        line = process.stdout.readline()  # the line that says that it is up
        watchdog.cancel()
        assert line and process.poll() is None, f"{command}\n{line}{process.stdout.read()}"
        return line

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, check=False, cwd=self._folder, env=self._environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}"
        return done.stdout

    def _environment(self) -> dict[str, str]:
        commands = Path(sys.executable).parent
        return {
            **os.environ,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "HOLDFAST_PORT": str(self._port),
            "HOLDFAST_URL": self._url,
            "COLUMNS": "80",
            "PYTHONUNBUFFERED": "1",  # in the order in which a terminal shows it
        }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

"""Processes of the peers: they talk by lines, and none of them outlives the benchmark."""

import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.costs import Meter, Sample
from bench.harness import UnmeasurableError
from bench.places import PEERS

STOP_SECONDS_MAX = 10
READY_SECONDS_MAX = 60


def free_port() -> int:
    """A port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def data_folder(name: str) -> Path:
    """A new folder for a server's data, on the same disk as the repository."""
    parent = PEERS / "data"
    parent.mkdir(parents=True, exist_ok=True)
    for folder in parent.iterdir():
        _remove_if_abandoned(folder)
    return Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-", dir=parent))


def _remove_if_abandoned(folder: Path) -> None:
    """Removes what a benchmark left behind that was killed before it could clean up."""
    owner = folder.name.split("-")[1]
    if not (owner.isdecimal() and Path("/proc", owner).exists()):
        shutil.rmtree(folder, ignore_errors=True)


class Process:
    """A child in a session of its own, killed by the kernel if the benchmark is killed.

    One that talks is spoken to by lines; any other writes all it says to its log.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
        talks: bool = False,
    ) -> None:
        self.name = Path(arguments[0]).name
        self.log = log
        self._unread = b""
        with log.open("ab") as errors:
            self._child = subprocess.Popen(
                [*_guard(user), *arguments],
                env=os.environ | dict(environment or {}),
                cwd=log.parent,
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else errors,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    @property
    def pid(self) -> int:
        return self._child.pid

    def say(self, line: str) -> None:
        """Writes a line to the process."""
        assert self._child.stdin is not None
        self._child.stdin.write(line.encode() + b"\n")
        self._child.stdin.flush()

    def expect(self, line: str, seconds_max: float) -> None:
        """Reads until the process says `line`; UnmeasurableError if it ends or stays silent."""
        assert self._child.stdout is not None
        wanted = line.encode() + b"\n"
        deadline = time.monotonic() + seconds_max
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while wanted not in self._unread:
                if not selector.select(deadline - time.monotonic()):
                    raise self.failure(f"did not say {line!r} within {seconds_max:g} s")
                chunk = os.read(self._child.stdout.fileno(), 65_536)
                if not chunk:
                    raise self.failure(f"ended before it said {line!r}")
                self._unread += chunk
        self._unread = self._unread.split(wanted, 1)[1]

    def line(self, seconds_max: float) -> str:
        """The next line that the process says; UnmeasurableError if it ends or stays silent."""
        assert self._child.stdout is not None
        deadline = time.monotonic() + seconds_max
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(deadline - time.monotonic()):
                    raise self.failure(f"said nothing within {seconds_max:g} s")
                chunk = os.read(self._child.stdout.fileno(), 65_536)
                if not chunk:
                    raise self.failure("ended before it said anything")
                self._unread += chunk
        found, _, self._unread = self._unread.partition(b"\n")
        return found.decode()

    def wait_until(self, ready: Callable[[], bool], seconds_max: float = READY_SECONDS_MAX) -> None:
        """Polls until a server answers."""
        deadline = time.monotonic() + seconds_max
        while not ready():
            if not self.alive:
                raise self.failure("ended while it started")
            if time.monotonic() > deadline:
                raise self.failure(f"was not ready within {seconds_max:g} s")
            time.sleep(0.02)

    def finish(self, seconds_max: float) -> None:
        """Waits until the process has ended well."""
        try:
            self._child.wait(seconds_max)
        except subprocess.TimeoutExpired:
            self.stop(signal.SIGKILL)
            raise self.failure(f"did not end within {seconds_max:g} s") from None
        if self._child.returncode != 0:
            raise self.failure(f"ended with {self._child.returncode}")

    def failure(self, what: str) -> UnmeasurableError:
        """The error that tells what this process did, with the end of its log."""
        lines = self.log.read_text(errors="replace").split("\n") if self.log.exists() else []
        tail = " | ".join([line.strip() for line in lines if line.strip()][-3:])
        return UnmeasurableError(f"{self.name} {what}; its log ends: {tail or '(empty)'}")

    def send(self, what: signal.Signals) -> None:
        self._child.send_signal(what)

    def pause(self) -> None:
        """Stops all of its threads, and returns when they have stopped."""
        self._child.send_signal(signal.SIGSTOP)
        tasks = Path("/proc", str(self._child.pid), "task")
        if tasks.exists():
            self.wait_until(lambda: all(_is_stopped(each) for each in tasks.iterdir()))

    def resume(self) -> None:
        self._child.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """kill -9."""
        self.stop(signal.SIGKILL)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Asks the process to end, and kills its whole session if it does not."""
        if self.alive:
            self._child.send_signal(how)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(STOP_SECONDS_MAX)
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()


def _is_stopped(task: Path) -> bool:
    """By its state in /proc, behind its name in brackets."""
    return (task / "stat").read_text().rpartition(")")[2].split()[0] == "T"


def _guard(user: str | None) -> list[str]:
    """The prefix that ties a child's life to ours and takes root's rights from it."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        if user is not None:
            raise UnmeasurableError(
                "expected setpriv (util-linux) to run a server without root's rights"
            )
        return []
    drop = ["--reuid", user, "--regid", user, "--init-groups"] if user is not None else []
    return [setpriv, "--pdeathsig", "KILL", *drop, "--"]


def answers(port: int) -> bool:
    """Whether somebody listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Race(NamedTuple):
    """How long a peer took, and the processor time of its parts."""

    seconds: float
    meter: Meter

    def sample(self, count: int) -> Sample:
        """So many units a second, and what each of them cost."""
        return self.meter.sample(count / self.seconds, count)


def race(
    submitter: Sequence[str],
    worker: Sequence[str],
    folder: Path,
    server_pid: int,
    seconds_max: float = 300,
) -> Race:
    """From the word to submit until the worker says that all is completed.

    Both processes say `ready` when they are connected; their start is not measured.
    """
    processes: list[Process] = []
    try:
        running = Process(worker, folder / "worker.log", talks=True)
        processes.append(running)
        submitting = Process(submitter, folder / "submitter.log", talks=True)
        processes.append(submitting)
        running.expect("ready", READY_SECONDS_MAX)
        submitting.expect("ready", READY_SECONDS_MAX)
        parts = {"server": [server_pid], "worker": [running.pid], "client": [submitting.pid]}
        with Meter(parts) as meter:
            begun = time.perf_counter()
            submitting.say("go")
            submitting.expect("submitted", seconds_max)
            running.expect("done", seconds_max)
            seconds = time.perf_counter() - begun
        return Race(seconds, meter)
    finally:
        for process in processes:
            process.stop(signal.SIGKILL)


class ServerProcess:
    """What tests and benchmarks do to a server that runs as a process of its own."""

    _process: Process | None = None

    def kill(self) -> None:
        """kill -9; what it wrote stays."""
        assert self._process is not None
        self._process.stop(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: the connections stay, and nothing is answered."""
        assert self._process is not None
        self._process.pause()

    def resume(self) -> None:
        assert self._process is not None
        self._process.resume()

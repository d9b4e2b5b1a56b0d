"""Many connections that send their heads byte by byte do not slow those that work."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BODY = b'{"type": "mail"}'
TASK = (
    b"POST /v2/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
)
NOISE_SECONDS = 0.020  # in a few hundred requests, the 99th of a hundred is one or two of them

ATTACK = """
import selectors, socket, sys, time
port, count = int(sys.argv[1]), int(sys.argv[2])

def connect():
    wire = socket.create_connection(("127.0.0.1", port))
    wire.sendall(b"POST /v2/tasks HTTP/1.1\\r\\nHost: localhost\\r\\nX: ")
    return wire

wires = [connect() for _ in range(count)]
print("ready", flush=True)
while True:
    for index, wire in enumerate(wires):
        try:
            wire.send(b"a")
        except OSError:
            wire.close()
            wires[index] = connect()
        time.sleep(1 / count)
"""


@contextmanager
def child(*command: str) -> Iterator[str]:
    """A process of which the first line is told."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
    finally:
        process.terminate()
        process.wait(30)


def measured(port: int, seconds: float) -> list[float]:
    """How long live requests took, one after the other."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        while (began := time.perf_counter()) < end:
            wire.sendall(TASK)
            assert wire.recv(65_536).startswith(b"HTTP/1.1 200")
            taken.append(time.perf_counter() - began)
    return taken


def p99(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]


def attack(folder: Path, connections: int, rounds: int, seconds: float) -> tuple[float, float]:
    """The p99 of live requests without and with an attack, by turns: others use the machine too."""
    start = ("-m", "holdfast.cli", "start", str(folder), "--port", "0", "--json")
    calm: list[float] = []
    attacked: list[float] = []
    with child(*start) as line:
        port = int(json.loads(line)["url"].rpartition(":")[2])
        measured(port, seconds / 2)  # warm
        for _ in range(rounds):
            calm += measured(port, seconds)
            with child("-c", ATTACK, str(port), str(connections)) as ready:
                assert ready == "ready\n"
                attacked += measured(port, seconds)
    return p99(calm), p99(attacked)


def test_a_hundred_slow_heads_do_not_slow_live_requests(tmp_path: Path) -> None:
    calm, attacked = attack(tmp_path, 100, 3, 0.5)
    assert attacked <= 2 * calm + NOISE_SECONDS, (calm, attacked)


@pytest.mark.soak
def test_a_thousand_slow_heads_do_not_slow_live_requests(tmp_path: Path) -> None:
    calm, attacked = attack(
        tmp_path, 1_000, 4, 15.0
    )  # longer than a head may take: they come again
    print(f"p99 {calm * 1_000:.2f} ms without, {attacked * 1_000:.2f} ms with 1,000 slow heads")
    assert attacked <= 2 * calm, (calm, attacked)

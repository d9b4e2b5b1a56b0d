"""What tests need: virtual time, a simulated disk and network, a node in memory, and a kit.

import holdfast.testing

with holdfast.testing.app() as app:
    @app.task
    def greet(name: str) -> str:
        return f"hello {name}"

    handle = greet.submit("world")
    app.run_all()
    assert handle.result() == "hello world"
"""

from holdfast.testing.disk import DiskOutcome, SimulatedCrash, SimulatedDisk
from holdfast.testing.kit import TestApp, app
from holdfast.testing.loop import DeadlockError, VirtualClock, VirtualLoop, run
from holdfast.testing.network import SimulatedNetwork, Weather
from holdfast.testing.node import MemoryNode

__all__ = [
    "DeadlockError",
    "DiskOutcome",
    "MemoryNode",
    "SimulatedCrash",
    "SimulatedDisk",
    "SimulatedNetwork",
    "TestApp",
    "VirtualClock",
    "VirtualLoop",
    "Weather",
    "app",
    "run",
]

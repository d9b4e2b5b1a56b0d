"""Other systems on the same machine, for the figures that are measured against them.

Each is installed on first use under `build/peers`, runs a real server on loopback, and keeps its
data on the repository's disk only for as long as it runs.
"""

from bench.peers.api import LatencyPeer, ProcessPeer, TaskPeer, measured, running
from bench.peers.celery import Celery
from bench.peers.dbos import DbosTwoStep
from bench.peers.dramatiq import Dramatiq
from bench.peers.huey import Huey
from bench.peers.pgqueuer import Pgqueuer
from bench.peers.restate import Restate, RestateTwoStep

__all__ = [
    "Celery",
    "DbosTwoStep",
    "Dramatiq",
    "Huey",
    "LatencyPeer",
    "Pgqueuer",
    "ProcessPeer",
    "Restate",
    "RestateTwoStep",
    "TaskPeer",
    "measured",
    "running",
]

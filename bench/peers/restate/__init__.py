"""Restate: durable invocations over its HTTP ingress."""

from bench.peers.restate.latency import Restate
from bench.peers.restate.two_step import RestateTwoStep

__all__ = ["Restate", "RestateTwoStep"]

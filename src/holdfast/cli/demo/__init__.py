"""`holdfast demo`: a workload, a killed worker, a process; and nothing lost or doubled."""

from holdfast.cli.demo.command import register

__all__ = ["register"]

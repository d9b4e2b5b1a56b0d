"""`holdfast demo`: a workload, a killed worker, and nothing lost or doubled."""

from holdfast.cli.demo.command import register

__all__ = ["register"]

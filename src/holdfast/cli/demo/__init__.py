"""`holdfast demo`: a shop, a killed worker, tables of it all; and nothing lost or doubled."""

from holdfast.cli.demo.command import register

__all__ = ["register"]

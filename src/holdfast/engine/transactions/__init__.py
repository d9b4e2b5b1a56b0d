"""Transactions: commands for several partitions of which all are done, or none."""

"""Transactions: operations on several partitions of which all are done, or none."""

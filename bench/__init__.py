"""Benchmarks: every figure is a ratio to a limit or a peer that is measured in the same run."""

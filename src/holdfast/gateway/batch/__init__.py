"""Batch operations: what can be asked of them, and who answers."""

"""Batch operations: one command for each of many items, chosen by a filter, beside live work."""

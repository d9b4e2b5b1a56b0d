"""The log, read from outside."""

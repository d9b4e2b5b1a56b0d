"""Processes: deployments, instances and messages."""

"""Processes: definitions that were deployed, their instances, and how tokens move in them."""

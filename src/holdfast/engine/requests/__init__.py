"""Requests: the answers to commands with a request id, kept for whoever has to ask again."""

"""Requests: the answers to commands with a request id, kept for clients that have to ask again."""

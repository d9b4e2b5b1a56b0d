"""Backups: a node as of one moment, in a folder or in S3, and back into an empty folder."""

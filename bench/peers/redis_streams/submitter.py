# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Adds messages to a stream: submitter.py PORT COUNT BYTES."""

import os
import sys

from redis import from_url

BATCH = 64  # in one pipeline: they share an fsync


def main(port: int, count: int, size_bytes: int) -> None:
    client = from_url(f"redis://127.0.0.1:{port}")
    client.ping()
    body = os.urandom(size_bytes)
    print("ready", flush=True)
    sys.stdin.readline()
    for first in range(0, count, BATCH):
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(min(BATCH, count - first)):
                pipeline.xadd("packages", {"body": body})
            pipeline.execute()
    print("submitted", flush=True)


main(*map(int, sys.argv[1:4]))

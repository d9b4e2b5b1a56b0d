# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Publishes messages to a stream: submitter.py PORT COUNT BYTES."""

import asyncio
import os
import sys

import nats

UNDER_WAY = 64


async def main(port: int, count: int, size_bytes: int) -> None:
    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    stream = connection.jetstream()
    body = os.urandom(size_bytes)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for first in range(0, count, UNDER_WAY):
        publishing = [stream.publish("packages", body) for _ in range(first, count)[:UNDER_WAY]]
        await asyncio.gather(*publishing)
    print("submitted", flush=True)
    await connection.close()


asyncio.run(main(*map(int, sys.argv[1:4])))

# pyright: reportMissingImports=false
"""Submits no-ops to pgqueuer in bulk: submitter.py DSN COUNT ENQUEUE_SIZE."""

import sys

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries


async def main(dsn: str, count: int, enqueue_size: int) -> None:
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    print("ready", flush=True)
    sys.stdin.readline()
    for begin in range(0, count, enqueue_size):
        size = min(enqueue_size, count - begin)
        await queries.enqueue(["noop"] * size, [None] * size, [0] * size)
    print("submitted", flush=True)
    await connection.close()


uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

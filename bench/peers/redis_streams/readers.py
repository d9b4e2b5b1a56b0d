# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Readers of a stream, each with a group of its own: readers.py PORT COUNT READERS."""

import asyncio
import sys

from redis.asyncio import Redis

BATCH = 100  # messages in one read, acknowledged together


async def read(client: Redis, group: str, count: int) -> None:
    left = count
    while left:
        answer = await client.xreadgroup(group, "reader", {"packages": ">"}, BATCH, block=5_000)
        for _, entries in answer:
            await client.xack("packages", group, *[entry for entry, _ in entries])
            left -= len(entries)


async def main(port: int, count: int, readers: int) -> None:
    clients = [Redis(port=port) for _ in range(readers)]
    await clients[0].delete("packages")
    for number, client in enumerate(clients):
        await client.xgroup_create("packages", f"group {number}", "$", mkstream=True)
    print("ready", flush=True)
    await asyncio.gather(
        *(read(client, f"group {number}", count) for number, client in enumerate(clients))
    )
    print("done", flush=True)
    await asyncio.gather(*(client.aclose() for client in clients))


asyncio.run(main(*map(int, sys.argv[1:4])))

# pyright: reportMissingImports=false
"""Invokes two-step handlers side by side: two_step_submitter.py PORT COUNT CONCURRENCY.

It speaks HTTP/1.1 by hand, so that the client takes next to nothing of the two cores.
"""

import asyncio
import json
import sys
from collections.abc import Iterator

import uvloop

REQUEST = (
    b"POST /TwoStep/run HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%s"
)
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def invoke(connection: Connection, number: int) -> None:
    """One invocation, and the check that it ended well with the right result."""
    reader, writer = connection
    body = str(number).encode()
    writer.write(REQUEST % (len(body), body))
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    result = await reader.readexactly(length)
    expected = {"reserved": number, "charged": number}
    if head.split(None, 2)[1] != b"200" or json.loads(result) != expected:
        sys.exit(f"expected {expected}, found {head!r} {result!r}")


async def invoke_all(connection: Connection, numbers: Iterator[int]) -> None:
    for number in numbers:  # shared by all connections: each takes the next
        await invoke(connection, number)


async def main(port: int, count: int, concurrency: int) -> None:
    connections = [
        await asyncio.open_connection("127.0.0.1", port) for _ in range(min(count, concurrency))
    ]
    print("ready", flush=True)
    sys.stdin.readline()
    numbers = iter(range(count))
    await asyncio.gather(*(invoke_all(connection, numbers) for connection in connections))
    print("done", flush=True)


uvloop.run(main(*map(int, sys.argv[1:4])))

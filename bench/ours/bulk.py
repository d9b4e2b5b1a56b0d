"""A client that costs little: batches of tasks submitted, leased and completed over bare HTTP.

    python -m bench.ours.bulk URL BATCHES CONNECTIONS

It says when it is ready, begins at a line of input, and says then when it began and ended. Requests
are encoded once and answers are read only as far as needed, so that the node is what is measured.
"""

import asyncio
import sys
import time
from urllib.parse import urlsplit

import msgspec
import uvloop

BATCH = 100
_TASK = b'{"type":"bulk","payload":{"number":1}}'
_SUBMIT = b'{"tasks":[' + b",".join([_TASK] * BATCH) + b"]}"
_LEASE = b'{"types":["bulk"],"worker":"bench","jobsMax":%d,"leaseMs":60000,"waitMs":5000}' % BATCH


class _Job(msgspec.Struct, rename="camel"):
    job_key: str
    lease: str


class _Jobs(msgspec.Struct):
    jobs: list[_Job]


_decode_jobs = msgspec.json.Decoder(_Jobs).decode


class _Connection:
    """One connection that is kept."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def post(self, path: bytes, body: bytes) -> bytes:
        self._writer.write(
            b"POST %s HTTP/1.1\r\nhost: %s:%d\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%s"
            % (path, self._host.encode(), self._port, len(body), body)
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return await self._reader.readexactly(length)


async def _work(connection: _Connection, batches: int) -> None:
    for _ in range(batches):
        await connection.post(b"/v2/tasks/batch", _SUBMIT)
        jobs = _decode_jobs(await connection.post(b"/v2/jobs/leases", _LEASE)).jobs
        if jobs:
            reports = [
                b'{"jobKey":"%s","lease":"%s"}' % (job.job_key.encode(), job.lease.encode())
                for job in jobs
            ]
            await connection.post(b"/v2/jobs/completion", b'{"jobs":[%s]}' % b",".join(reports))


async def _main(url: str, batches: int, connections: int) -> None:
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None
    held = [_Connection(parts.hostname, parts.port) for _ in range(connections)]
    for connection in held:
        await connection.open()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    begun = time.monotonic()
    await asyncio.gather(*(_work(each, batches // connections) for each in held))
    print(begun, time.monotonic(), flush=True)


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

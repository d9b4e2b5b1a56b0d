"""What a guarded write to etcd takes, at the pace of cuts."""

import asyncio
import time

import uvloop

from bench.cluster.ticking import TICK_S, BareWriter
from bench.peers.etcd import EtcdServer

WRITES = 200
VALUE = b"0" * 200


def etcd_write_seconds(server: EtcdServer, writes: int = WRITES) -> list[float]:
    """How long each of so many writes took."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_write(server, writes))


async def _write(server: EtcdServer, writes: int) -> list[float]:
    writer = BareWriter(server.endpoint, "bench/pace")
    spans: list[float] = []
    try:
        for _ in range(writes):
            begun = time.perf_counter()
            await writer.write(VALUE)
            spans.append(time.perf_counter() - begun)
            await asyncio.sleep(TICK_S)
    finally:
        await writer.close()
    return spans

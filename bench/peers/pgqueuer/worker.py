# pyright: reportMissingImports=false
"""Runs pgqueuer's no-ops until all are completed: worker.py DSN COUNT BATCH_SIZE POOL_SIZE."""

import asyncio
import sys
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

LEFT_IN_QUEUE = "SELECT EXISTS (SELECT FROM pgqueuer)"
NEVER = timedelta(0)


async def main(dsn: str, count: int, batch_size: int, pool_size: int) -> None:
    async with asyncpg.create_pool(dsn, min_size=pool_size, max_size=pool_size) as pool:
        manager = QueueManager(Queries(AsyncpgPoolDriver(pool)))
        all_ran = asyncio.Event()
        left = count

        @manager.entrypoint("noop")
        async def noop(_job: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                all_ran.set()

        async def wait_until_recorded() -> None:
            await all_ran.wait()
            while await pool.fetchval(LEFT_IN_QUEUE):  # noqa: ASYNC110  only the database knows
                await asyncio.sleep(0.001)
            print("done", flush=True)

        waiting = asyncio.create_task(wait_until_recorded())
        print("ready", flush=True)
        await manager.run(batch_size=batch_size, log_aggregation_interval=NEVER)
        await waiting


uvloop.run(main(sys.argv[1], *map(int, sys.argv[2:5])))

# pyright: reportMissingImports=false
"""Gives pgqueuer empty tables: prepare.py DSN."""

import asyncio
import os
import sys

# The queue is logged and fsynced; only the table of past statistics is not.
os.environ["PGQUEUER_DURABILITY"] = "balanced"

import asyncpg
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries


async def main(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    if await queries.has_table("pgqueuer"):
        await queries.uninstall()
    await queries.install()
    await connection.execute("CHECKPOINT")
    await connection.close()


asyncio.run(main(sys.argv[1]))

# pyright: reportMissingImports=false
"""Gives pgqueuer empty tables of its default, durable kind: prepare.py DSN."""

import asyncio
import sys

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

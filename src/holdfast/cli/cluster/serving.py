"""A member of a cluster, serving HTTP until it is told to stop."""

import asyncio
import contextlib
import time
from pathlib import Path

from holdfast.brokered.opening import open_brokered
from holdfast.cli.beside import Beside
from holdfast.cli.serving import announce_start, let_first_in, serve
from holdfast.cluster.joining import open_member
from holdfast.config import Config
from holdfast.config.showing import running_settings
from holdfast.gateway.http.tls import certificate_of
from holdfast.limits import CLUSTER_START_MS_MAX


async def serve_member(folder: Path, config: Config, *, as_json: bool, with_pipeline: bool) -> None:
    """Joins the cluster, serves, and hands everything over before it stops."""
    began = time.monotonic()
    certificate_of(config.tls_certificate, config.tls_key)  # a wrong one leaves no folder behind
    member = await (open_brokered if config.journal else open_member)(folder, config)
    try:
        await member.placed(CLUSTER_START_MS_MAX / 1_000)
        member.node.gateway.show_settings(running_settings(config, folder))
        if config.authorization and member.is_first:
            await let_first_in(member.node, folder, config)
        took_ms = round((time.monotonic() - began) * 1000)
        announcing: list[asyncio.Task[None]] = []
        beside = contextlib.ExitStack()

        def announce(url: str) -> None:
            if with_pipeline:  # the folder has copies of logs; what counts is read from the members
                tables = config.tables or str(folder / "tables")
                beside.enter_context(Beside(["pipeline", "run", url, "--tables", tables]))
            announcing.append(asyncio.get_running_loop().create_task(member.serves_at(url)))
            count = member.place.placements.count
            announce_start(
                url, folder, count, member.node.replayed_events, took_ms, config,
                member=member.name, journal=member.journal_url, as_json=as_json,
            )  # fmt: skip

        with beside:
            await serve(member.node, config, announce, asyncio.Event(), before_end=member.leave)
    finally:
        await member.close()

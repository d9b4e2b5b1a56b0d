"""Transactions from the command line: those that wait for a partition that is away."""

import asyncio
import re
import threading

import pytest
from tests.gateway.distribution.dark_partitions import go_dark

from holdfast.client.remote import RemoteApi
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.gateway.transactions.shapes import (
    TransactionRequest,
    TransactionResult,
    TransactionStep,
)
from holdfast.records import partition_for

from .shell import Shell

KEYS = [next(f"k{n}" for n in range(99) if partition_for(f"k{n}", 3) == at) for at in (1, 2, 3)]


def commit(url: str, *keys: str, timeout_ms: int = 30_000) -> TransactionResult:
    async def ask() -> TransactionResult:
        api = RemoteApi(url)
        try:
            steps = [TransactionStep(submit=NewTask("a", key=each)) for each in keys]
            return await api.transactions.commit(TransactionRequest(steps, timeout_ms=timeout_ms))
        finally:
            await api.close()

    return asyncio.run(ask())


def test_open_and_stuck_transactions_are_listed_and_shown(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.serve_node(partitions=3)
    assert shell.run("transactions", "list").out == "no transaction is open\n"
    done = commit(shell.url, *KEYS)
    shown = shell.run("transactions", "show", done.transaction_key)
    assert re.search(r"state +COMMITTED", shown.out) and re.search(
        r"partitions +1, 2, 3", shown.out
    )
    dark = go_dark(monkeypatch, 3)
    aborted: list[TransactionResult] = []
    keys = [next(f"n{n}" for n in range(99) if partition_for(f"n{n}", 3) == at) for at in (1, 2, 3)]
    thread = threading.Thread(
        target=lambda: aborted.append(commit(shell.url, *keys, timeout_ms=1_000))
    )
    thread.start()
    while not (listed := shell.run("transactions", "list", "--json").json["items"]):
        pass
    [item] = listed
    assert item["state"] == "OPEN"
    thread.join()
    lines = shell.run("transactions", "list").out.splitlines()
    assert re.split(r" {2,}", lines[0].strip()) == [
        "KEY", "STATE", "HOME", "PARTITIONS", "WAITS FOR", "AGE", "WHY",
    ]  # fmt: skip
    row = re.split(r" {2,}", lines[1].strip())
    assert row[:5] == [item["transactionKey"], "ABORTED", "1", "1, 2, 3", "3"]
    assert row[-1] == "DEADLINE_EXCEEDED"
    told = shell.run("transactions", "show", item["transactionKey"])
    assert "did not" in told.out and aborted[0].state == "ABORTED"
    dark.clear()
    missing = shell.run("transactions", "show", "2251799813999999")
    assert missing.code == 3 and "unknown or done and forgotten" in missing.err

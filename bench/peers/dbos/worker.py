# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Runs DBOS's two-step workflows until it is killed: worker.py DSN EXECUTOR THREADS POLL_MS."""

import sys
import threading

from dbos import DBOS

QUEUE = "bench"
CLAIMED_PER_THREAD = 8  # 5 polls a second with 8 threads allow 320 instances/s: no limit here


@DBOS.step()
def reserve(number: int) -> dict[str, int]:
    return {"reserved": number}


@DBOS.step()
def charge(number: int) -> dict[str, int]:
    return {"charged": number}


@DBOS.workflow(name="two_step")
def two_step(number: int) -> dict[str, int]:
    return {**reserve(number), **charge(number)}


def main(dsn: str, executor: str, threads: int, poll_ms: int) -> None:
    DBOS(
        config={
            "name": "bench",
            "application_version": "bench",
            "executor_id": executor,
            "system_database_url": dsn,
            "sys_db_pool_size": threads + 4,  # every thread, and DBOS's own, without a wait
            "db_engine_kwargs": {"pool_pre_ping": False},
            "max_executor_threads": threads,
            "log_level": "WARNING",
        }
    )
    DBOS.listen_queues([QUEUE])
    DBOS.launch()
    claimed_max = CLAIMED_PER_THREAD * threads
    DBOS.register_queue(QUEUE, worker_concurrency=claimed_max, polling_interval_sec=poll_ms / 1_000)
    print("ready", flush=True)
    threading.Event().wait()


main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5]))

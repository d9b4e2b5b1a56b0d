# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Readers of a stream, each with a durable consumer: readers.py PORT COUNT READERS."""

import asyncio
import contextlib
import sys

import nats
from nats.errors import TimeoutError as NothingYet
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import NotFoundError

BATCH = 100  # messages in one fetch; acknowledging the last acknowledges all


async def read(subscription: "nats.js.JetStreamContext.PullSubscription", count: int) -> None:
    left = count
    while left:
        try:
            messages = await subscription.fetch(min(BATCH, left), timeout=5)
        except NothingYet:
            continue
        await messages[-1].ack_sync(timeout=30)
        left -= len(messages)


async def main(port: int, count: int, readers: int) -> None:
    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    stream = connection.jetstream()
    with contextlib.suppress(NotFoundError):  # the first round
        await stream.delete_stream("packages")
    await stream.add_stream(name="packages", subjects=["packages"])
    everything = ConsumerConfig(ack_policy=AckPolicy.ALL, max_ack_pending=-1)
    subscriptions = [
        await stream.pull_subscribe("packages", f"reader-{number}", config=everything)
        for number in range(readers)
    ]
    print("ready", flush=True)
    await asyncio.gather(*(read(each, count) for each in subscriptions))
    print("done", flush=True)
    await connection.close()


asyncio.run(main(*map(int, sys.argv[1:4])))

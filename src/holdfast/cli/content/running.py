"""A subscriber that runs from the command line until it is stopped."""

import os
import signal
import threading
import time
from typing import Any

from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.output import number, print_json, print_line
from holdfast.client.content_subscriber import ContentSubscriber
from holdfast.content.subscriber.conditions import TROUBLED, SubscriberCondition
from holdfast.errors import DeadlineExceeded

_LOOK_SECONDS = 0.1  # a signal is noticed between two looks
_PROGRESS_SECONDS = 5.0


def run(subscriber: ContentSubscriber, into: str, *, as_json: bool, once: bool) -> None:
    """Tells what a subscriber does until a signal comes; with `once` until it has all."""
    stop = threading.Event()

    def on_signal(*_: Any) -> None:
        if stop.is_set():
            os._exit(ExitCode.INTERRUPTED)
        stop.set()

    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, on_signal) for each in signals]
    report = _Told(subscriber, as_json, once)
    report.say("started", f"{subscriber.name} imports packages into {into}")
    try:
        while not stop.is_set() and not (once and _has_all(subscriber)):
            report.look()
            stop.wait(_LOOK_SECONDS)
        subscriber.close()
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
    report.say("stopped", f"stopped: {report.counts()}")


def _has_all(subscriber: ContentSubscriber) -> bool:
    try:
        subscriber.wait_until_idle(_LOOK_SECONDS)
    except DeadlineExceeded:
        return False
    return True


class _Told:
    """Lines for people, JSON lines for programs."""

    def __init__(self, subscriber: ContentSubscriber, as_json: bool, once: bool) -> None:
        self._subscriber = subscriber
        self._as_json = as_json
        self._once = once
        self._condition = SubscriberCondition.STARTING
        self._imported = 0
        self._told_at = time.monotonic()

    def look(self) -> None:
        """Says what is new: another condition, or some more packages."""
        condition, reason = self._subscriber.condition, self._subscriber.reason
        if condition is not self._condition and not self._is_passing(condition):
            self._condition = condition
            why = f": {reason}" if reason else ""
            self.say("condition", f"{condition.value}{why}  {self.counts()}", reason=reason)
        elif self._subscriber.imported != self._imported and self._is_due():
            self.say("progress", f"{self.counts()}, {number(self._subscriber.lag)} to go")

    def _is_passing(self, condition: SubscriberCondition) -> bool:
        """Running is no news, unless it was in trouble before; with `once`, idle is the end."""
        if condition is SubscriberCondition.IDLE and self._once:
            return True
        running = condition is SubscriberCondition.RUNNING
        return running and self._condition not in TROUBLED

    def _is_due(self) -> bool:
        return time.monotonic() - self._told_at >= _PROGRESS_SECONDS

    def counts(self) -> str:
        return f"{number(self._subscriber.imported)} imported"

    def say(self, event: str, text: str, **more: Any) -> None:
        """A line, at once."""
        self._told_at = time.monotonic()
        self._imported = self._subscriber.imported
        if not self._as_json:
            print_line(text)
            return
        said = {
            "event": event, "subscriber": self._subscriber.name,
            "condition": self._subscriber.condition.value, "imported": self._imported,
            "ready": self._subscriber.ready,
        }  # fmt: skip
        print_json(said | more)

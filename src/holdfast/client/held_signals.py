"""Signals whose handlers wait until something is over that must not be broken off in its middle.

Python runs handlers in the main thread, between any two instructions, and they may raise, as that
of Ctrl-C does. In any other thread there is nothing to hold.
"""

import threading

# The module `signal` takes 20 times as long, to give each number its name.
from _signal import getsignal, signal  # pyright: ignore[reportMissingImports]
from collections.abc import Callable
from types import FrameType
from typing import Any

_NUMBERS = tuple(range(1, 32))  # the standard ones
_Handler = Callable[[int, FrameType | None], Any]
_main = threading.main_thread()
_seen: tuple[Any, ...] = ()  # what the signals were set to when it was last looked at
_callable: dict[int, _Handler] = {}  # of those, handlers in Python


class HeldSignals:
    """A block in which signals are noted; the handlers are called behind it."""

    __slots__ = ("_handlers", "_noted")

    def __init__(self) -> None:
        self._handlers: dict[int, _Handler] = {}
        self._noted: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.get_ident() != _main.ident:
            return
        try:
            for number, handler in _handlers_now().items():
                self._handlers[number] = handler
                signal(number, self._note)
        except ValueError:  # an interpreter beside the main one: it gets no signals
            self._handlers.clear()
        except BaseException:  # one came before it was held
            self._let_go()
            raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append((number, frame))

    def __exit__(self, *_: object) -> None:
        if self._handlers:
            self._let_go()

    def _let_go(self) -> None:
        """All handlers are back, whatever one of them raises; then those that waited are called."""
        handlers = dict(self._handlers)
        error: BaseException | None = None
        while self._handlers:
            try:
                number, handler = next(iter(self._handlers.items()))
                signal(number, handler)
                del self._handlers[number]
            except BaseException as raised:  # by a handler that is back already
                error = raised
        for number, frame in self._noted:
            try:
                handlers[number](number, frame)
            except BaseException as raised:
                error = raised
        if error is not None:
            raise error


def _handlers_now() -> dict[int, _Handler]:
    """The signals with a handler in Python; they are mostly the same as the last time."""
    global _seen, _callable
    now = tuple(map(getsignal, _NUMBERS))
    if now != _seen:
        found = zip(_NUMBERS, now, strict=True)
        # not the system's own way, not ignored, not of C
        _callable = {number: handler for number, handler in found if callable(handler)}
        _seen = now
    return _callable

"""Guesses at passwords: after several wrong ones a client has to wait, longer each time."""

import hashlib
from dataclasses import dataclass

from holdfast.clock import Clock
from holdfast.errors import ResourceExhausted
from holdfast.gateway.access.sites import LOOPBACK, site_of
from holdfast.limits import (
    GUESS_FORGOTTEN_MS,
    GUESS_PAUSE_MS,
    GUESS_PAUSE_MS_MAX,
    GUESSERS_KEPT_MAX,
    GUESSES_OF_ADDRESS_FREE,
    GUESSES_OF_USER_FREE,
)


class TooManyGuesses(ResourceExhausted):
    """Wrong passwords came too often: for this name, or from this address."""


@dataclass(slots=True)
class _Guesser:
    wrong: int
    last: float  # when it was wrong last, and ...
    until: float  # ... until when it has to wait


class Guesses:
    """The names and the addresses with wrong passwords lately.

    A guess counts when it begins, so that many at once are no more than one after the other; a
    right one is taken back. Behind a proxy on this machine all addresses are the proxy's, so a
    loopback address is not counted: there the names alone are.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guessers: dict[bytes, _Guesser] = {}  # in the order in which they were wrong last

    def begin(self, username: str, address: str) -> None:
        """Counts a guess; TooManyGuesses if it comes too early."""
        now = self._clock.monotonic()
        keys = _keys(username, address)
        wait = max(self._wait(key, now) for key, _ in keys)
        if wait > 0:
            raise TooManyGuesses(
                f"Expected fewer wrong passwords; wait {wait:.0f} s before the next one",
                retry_after_ms=int(wait * 1_000) + 1,
            )
        for key, free in keys:
            self._count(key, free, now)

    def right(self, username: str, address: str) -> None:
        """The guess was right: the name starts afresh, the address has one wrong guess less."""
        for key, free in _keys(username, address):
            guesser = self._guessers.get(key)
            if guesser is None:
                continue
            guesser.wrong = guesser.wrong - 1 if free == GUESSES_OF_ADDRESS_FREE else 0
            guesser.until = 0.0
            if guesser.wrong <= 0:
                del self._guessers[key]

    def _wait(self, key: bytes, now: float) -> float:
        guesser = self._guessers.get(key)
        return 0.0 if guesser is None else guesser.until - now

    def _count(self, key: bytes, free: int, now: float) -> None:
        guesser = self._guessers.pop(key, None)
        if guesser is None or now - guesser.last > GUESS_FORGOTTEN_MS / 1_000:
            guesser = _Guesser(0, now, 0.0)
        guesser.wrong += 1
        guesser.last = now
        beyond = guesser.wrong - free
        if beyond > 0:
            doublings = min(beyond - 1, GUESS_PAUSE_MS_MAX.bit_length())
            pause_ms = min(GUESS_PAUSE_MS << doublings, GUESS_PAUSE_MS_MAX)
            guesser.until = now + pause_ms / 1_000
        while len(self._guessers) >= GUESSERS_KEPT_MAX:
            del self._guessers[next(iter(self._guessers))]
        self._guessers[key] = guesser


def _keys(username: str, address: str) -> list[tuple[bytes, int]]:
    """What is counted, each with how many wrong guesses cost no time. All are of one length."""
    site = site_of(address)
    keys = [(_key("user", username), GUESSES_OF_USER_FREE)]
    if site != LOOPBACK:
        keys.append((_key("address", site), GUESSES_OF_ADDRESS_FREE))
    return keys


def _key(kind: str, name: str) -> bytes:
    return hashlib.sha256(f"{kind} {name}".encode()).digest()[:16]

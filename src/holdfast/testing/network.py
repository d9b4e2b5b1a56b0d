"""A network in memory that does what real ones do: delays, loses, doubles, reorders and splits.

Everything it does follows from its seed and the order of the sends, so a seed replays a failure. It
runs on whatever loop runs the test; on a `VirtualLoop` the delays cost nothing.
"""

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import msgspec

Receive = Callable[[str, Any], None]
"""Called with the sender's name and the message."""


class Weather(msgspec.Struct, frozen=True):
    """How the network behaves. Messages whose delays differ overtake each other."""

    delay_ms_min: float = 1.0
    delay_ms_max: float = 10.0
    loss: float = 0.0  # the share of messages that never arrive
    duplication: float = 0.0  # the share that arrives twice


class SimulatedNetwork:
    """Names that send each other messages.

    >>> async def story():
    ...     network, heard = SimulatedNetwork(seed=1), []
    ...     network.attach("b", lambda sender, message: heard.append((sender, message)))
    ...     network.send("a", "b", "hello")
    ...     await asyncio.sleep(1)
    ...     return heard
    >>> from holdfast.testing.loop import run
    >>> run(story())
    [('a', 'hello')]
    """

    def __init__(self, *, seed: int = 0, weather: Weather | None = None) -> None:
        self.weather = weather or Weather()
        self.sent = 0
        self.delivered = 0
        self._numbers = 0
        self._random = Random(seed)
        self._receivers: dict[str, Receive] = {}
        self._sides: dict[
            str, int
        ] = {}  # name -> its side of the split; none while there is no split
        self._cut: set[tuple[str, str]] = set()  # (from, to) that is broken one way

    def attach(self, name: str, receive: Receive) -> None:
        """Delivers messages for this name to `receive`."""
        self._receivers[name] = receive

    def detach(self, name: str) -> None:
        """Takes the name down: messages on their way to it are lost."""
        self._receivers.pop(name, None)

    def number(self) -> int:
        """A number that is unique in this simulated network."""
        self._numbers += 1
        return self._numbers

    def send(self, sender: str, target: str, message: Any) -> None:
        """Sends a message. The network decides whether and when it arrives."""
        self.sent += 1
        copies = 2 if self._random.random() < self.weather.duplication else 1
        for _ in range(copies):
            lost = self._random.random() < self.weather.loss
            delay_ms = self._random.uniform(self.weather.delay_ms_min, self.weather.delay_ms_max)
            if not lost and self.reaches(sender, target):
                loop = asyncio.get_running_loop()
                loop.call_later(delay_ms / 1000, self._deliver, sender, target, message)

    def _deliver(self, sender: str, target: str, message: Any) -> None:
        receive = self._receivers.get(target)
        if receive is not None and self.reaches(sender, target):
            self.delivered += 1
            receive(sender, message)

    # --- splits -------------------------------------------------------------------------------

    def reaches(self, sender: str, target: str) -> bool:
        """Whether the target is reachable from the sender now."""
        same_side = self._sides.get(sender, -1) == self._sides.get(target, -1)
        return same_side and (sender, target) not in self._cut

    def split(self, *sides: Iterable[str]) -> None:
        """Partitions the network: only names of the same side reach each other."""
        self._sides = {name: number for number, side in enumerate(sides) for name in side}

    def cut(self, sender: str, target: str) -> None:
        """Breaks one direction."""
        self._cut.add((sender, target))

    def heal(self) -> None:
        """Makes every name reachable again; lost messages stay lost."""
        self._sides.clear()
        self._cut.clear()

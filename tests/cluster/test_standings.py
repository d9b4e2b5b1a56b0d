"""What members say they have all of is said again over each new connection."""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from holdfast.cluster.standings import Standings
from holdfast.errors import Unavailable
from holdfast.transport import Link, Links


class FakeLink:
    """Remembers what was told over the present connection."""

    peer = "b"

    def __init__(self) -> None:
        self.is_up = True
        self.heard: list[Any] = []
        self._on_down: list[Callable[[], None]] = []

    def on_down(self, callback: Callable[[], None]) -> None:
        self._on_down.append(callback)

    def tell(self, kind: int, body: bytes) -> None:
        if not self.is_up:
            raise Unavailable("it is down")
        self.heard.append(msgspec.msgpack.decode(body))

    def connect_anew(self) -> None:
        self.heard.clear()
        for callback in self._on_down:
            callback()


def test_standings_are_told_once_over_a_connection_and_again_over_the_next_one() -> None:
    link, standings = FakeLink(), Standings()
    links = cast(Links, [link])
    standings.follow(cast(Link, link))
    standings.told("b", msgspec.msgpack.encode([3]))
    for _ in range(2):
        standings.tell([1, 2], links)
    assert link.heard == [[1, 2]]
    assert standings.has_all(3, "b")
    link.connect_anew()  # the member has not greeted over the former connection
    assert not standings.has_all(3, "b")
    standings.tell([1, 2], links)
    assert link.heard == [[1, 2]]

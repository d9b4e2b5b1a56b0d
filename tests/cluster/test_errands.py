"""What members ask of one another about the cluster itself."""

from typing import Any

import msgspec
import pytest

from holdfast.cluster.errands import DRAIN, MOVE, ErrandHandler

_encode = msgspec.msgpack.encode


class Errands:
    """Notes what it is asked to do."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        async def done() -> None:
            pass

        def called(*arguments: Any) -> Any:
            self.asked.append((name, *arguments))
            return done()

        return called


@pytest.mark.parametrize(
    ("kind", "body", "asked"),
    [(MOVE, (1, "b"), ("move_away", 1, "b")), (DRAIN, True, ("set_draining", True))],
)
def test_an_errand_is_begun_when_it_is_waited_for(kind: int, body: Any, asked: Any) -> None:
    errands: Any = Errands()
    handler = ErrandHandler(errands, errands)
    given_up: Any = handler.called(kind, _encode(body))
    given_up.close()  # as when the member stops before the first step
    assert errands.asked == []
    answer: Any = handler.called(kind, _encode(body))
    with pytest.raises(StopIteration) as ended:
        answer.send(None)
    assert ended.value.value == b""
    assert errands.asked == [asked]

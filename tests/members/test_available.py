"""Which partition is asked for jobs: those of this member first, and the others in their turn."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.engine.jobs.values import JobsAvailable
from holdfast.errors import Unavailable
from holdfast.gateway.tasks.available import (
    ASKED_LATELY_S,
    FAR_EVERY,
    LOOK_AGAIN_S,
    Available,
)
from holdfast.testing import run


class Everywhere:
    """Four partitions with work, two of them here."""

    count, near = 4, (1, 3)

    def follow(self, topic: Any, tell: Callable[[Any], None]) -> Callable[[], None]:
        return lambda: None

    async def ask(self, partition: int, query: Any) -> list[str]:
        return list(query.types)


def test_partitions_of_this_member_come_first_and_the_others_in_their_turn() -> None:
    async def story() -> None:
        served: list[JobsAvailable] = []
        available = Available(Everywhere(), served.append)  # type: ignore[arg-type]
        await available.follow(("work",))
        asked = Counter(available.next(("work",))[1] for _ in range(4 * FAR_EVERY))  # type: ignore[index]
        assert asked[1] + asked[3] > 3 * (asked[2] + asked[4]) > 0
        while (found := available.next(("work",))) is not None:
            available.none(*found)
        assert served == []

    asyncio.run(story())


def test_word_of_jobs_that_comes_while_a_partition_is_asked_is_not_forgotten() -> None:
    async def story() -> None:
        available = Available(Everywhere(), lambda _: None)  # type: ignore[arg-type]
        await available.follow(("work",))
        found = available.next(("work",))
        assert found is not None
        available._told("work", JobsAvailable(found[1], "work"))
        available.none(*found)
        assert any(
            (each := available.next(("work",))) is not None and each[1] == found[1]
            for _ in range(8)
        )

    asyncio.run(story())


class Moving(Everywhere):
    """The second partition has no owner for a while, and nobody tells of its jobs then."""

    def __init__(self) -> None:
        self.has_owner = False
        self.asked = 0

    async def ask(self, partition: int, query: Any) -> list[str]:
        self.asked += 1
        if partition != 2:
            return []
        if not self.has_owner:
            raise Unavailable("Partition 2 has no owner", partition=2)
        return list(query.types)


@pytest.mark.parametrize("how", ["looked for", "asked for jobs", "told of while looking"])
def test_jobs_of_a_partition_that_did_not_answer_are_found_when_it_has_an_owner(how: str) -> None:
    async def story() -> None:
        served: list[JobsAvailable] = []
        everywhere = Moving()
        everywhere.has_owner = how != "looked for"
        available = Available(everywhere, served.append)  # type: ignore[arg-type]
        await available.follow(("work",))
        if (found := available.next(("work",))) is not None:
            available.none(*found)
        if how == "asked for jobs":
            available.look_again("work")
        elif how == "told of while looking":
            available._told("work", None)
            available._told("work", None)
        else:
            await asyncio.sleep(3 * LOOK_AGAIN_S)
            everywhere.has_owner = True
        await asyncio.sleep(2 * LOOK_AGAIN_S)
        assert JobsAvailable(2, "work") in served
        asked = everywhere.asked
        await asyncio.sleep(5 * LOOK_AGAIN_S)
        assert everywhere.asked == asked  # everybody has answered

    run(story())


def test_nobody_is_asked_for_ever_for_a_type_that_no_worker_wants() -> None:
    async def story() -> None:
        everywhere = Moving()
        available = Available(everywhere, lambda _: None)  # type: ignore[arg-type]
        await available.follow(("work",))
        await asyncio.sleep(ASKED_LATELY_S + 5)
        asked, everywhere.has_owner = everywhere.asked, True
        await asyncio.sleep(ASKED_LATELY_S)
        assert everywhere.asked == asked
        await available.follow(("work",))
        assert available.next(("work",)) is not None

    run(story())

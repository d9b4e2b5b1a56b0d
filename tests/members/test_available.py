"""Which partition is asked for jobs: those of this member first, and the others in their turn."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from holdfast.engine.jobs.values import JobsAvailable
from holdfast.gateway.tasks.available import FAR_EVERY, Available


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

"""The cluster demo: three members under load, of which one after the other is killed."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from holdfast.cli.demo.cluster_load import ClusterLoad
from holdfast.cli.demo.cluster_stage import NAMES, ClusterStage
from holdfast.cli.demo.cluster_verdict import ClusterVerdict, MemberKilled, judge, read_member
from holdfast.client.remote import RemoteApi
from holdfast.errors import Unavailable
from holdfast.gateway.cluster.shapes import ClusterStatus

_LOOK_SECONDS = 0.05
_HEALTHY_SECONDS_MAX = 60.0
_CALM_SECONDS = 2.0  # of load before, between and after the kills
_CUTS_LISTED = 200
_ANSWERS_MIN = 20  # after a kill: more than are on their way at once

Say = Callable[[str], None]


class ClusterStory:
    """Runs the demo in a folder; what happens is told as it happens."""

    def __init__(self, folder: Path, kills: int, say: Say) -> None:
        self._folder = folder
        self._kills = kills
        self._say = say
        self._last = ""  # the member that was killed last
        self._cuts: dict[int, datetime] = {}  # when each cut was published

    async def run(self, draw: Callable[[ClusterLoad, list[MemberKilled]], None]) -> ClusterVerdict:
        """The whole story; `draw` makes a picture of it."""
        began = time.monotonic()
        self._say("starting etcd and three members, each in a process and a folder of its own")
        with ClusterStage(self._folder) as stage:
            status = await self._healthy(stage.urls)
            count = len(status.partitions)
            self._say(
                f"members {', '.join(NAMES)} are up in {time.monotonic() - began:.1f} s; each of"
                f" {count} partitions is on {status.replication_factor} disks"
            )
            load = ClusterLoad(stage.urls, count)
            load.start()
            self._say(f"submitting {100 * count} tasks a second through all of them")
            killed = [await self._kill(stage, load) for _ in range(self._kills)]
            await asyncio.sleep(_CALM_SECONDS)
            unanswered = await load.stop()
            if unanswered:
                raise Unavailable(f"{unanswered} tasks were not answered when the load had ended")
            self._say("reading the logs of all partitions from each member, and the order of cuts")
            cut = (await self._healthy(stage.urls)).cut
            logs = [await read_member(url, cut) for url in stage.urls]
        draw(load, killed)
        seconds = time.monotonic() - began
        return judge(load.sent, load.acknowledged, logs, killed, seconds)

    async def _kill(self, stage: ClusterStage, load: ClusterLoad) -> MemberKilled:
        """Kills the member that owns most partitions, but not twice in a row; starts it again."""
        await asyncio.sleep(_CALM_SECONDS)
        status = await self._healthy(stage.urls)
        others = [each for each in status.members if each.member != self._last]
        victim = max(others, key=lambda each: (len(each.owned_partitions), each.member))
        self._last = victim.member
        owned = victim.owned_partitions
        numbers = ", ".join(map(str, owned))
        self._say(f"kill -9 of member {victim.member}, which owns partitions {numbers}")
        at = time.monotonic()
        stage.kill(victim.member)
        again = await self._again(load, owned, at)
        longest = max(again.values(), default=0.0)
        gap = await self._gap(stage.urls)
        self._say(
            f"  its partitions commit again after {longest * 1_000:.0f} ms; the longest time"
            f" without a cut was {gap * 1_000:.0f} ms"
        )
        await asyncio.to_thread(stage.start, victim.member)
        self._say(f"  member {victim.member} is back and catches up")
        return MemberKilled(victim.member, at, again, gap)

    async def _again(self, load: ClusterLoad, partitions: list[int], at: float) -> dict[int, float]:
        """By partition, the seconds from the kill until the end of its longest silence."""
        deadline = at + _HEALTHY_SECONDS_MAX
        while True:
            taken = {each: load.times(each) for each in partitions}
            # Answers that were on their way when the member died come before the silence.
            if all(sum(moment > at for moment in each) > _ANSWERS_MIN for each in taken.values()):
                return {each: silence_end(times, at) - at for each, times in taken.items()}
            if time.monotonic() > deadline:
                raise Unavailable(f"Partitions {partitions} did not commit within a minute")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _gap(self, urls: list[str]) -> float:
        """The longest time between two cuts among the last ones."""
        await asyncio.sleep(_CALM_SECONDS / 2)
        async with closing_api(urls) as api:
            cuts = (await api.cluster.cuts(_CUTS_LISTED)).items
        fresh = sorted((each.number, each.time) for each in cuts if each.number not in self._cuts)
        self._cuts |= dict(fresh)
        times = [moment for _, moment in fresh]
        return max(((b - a).total_seconds() for a, b in pairwise(times)), default=0.0)

    async def _healthy(self, urls: list[str]) -> ClusterStatus:
        """Waits until all members are up and every partition is on all of its disks."""
        async with closing_api(urls) as api:
            return await self._wait_until_whole(api)

    async def _wait_until_whole(self, api: RemoteApi) -> ClusterStatus:
        deadline = time.monotonic() + _HEALTHY_SECONDS_MAX
        while True:
            status = await api.cluster.status()
            is_whole = all(each.state == "UP" for each in status.members) and all(
                each.state == "HEALTHY" for each in status.partitions
            )
            if is_whole and len(status.members) == len(NAMES):
                return status
            if time.monotonic() > deadline:
                raise Unavailable(f"The cluster is not healthy: {'; '.join(status.problems)}")
            await asyncio.sleep(_LOOK_SECONDS)


@contextlib.asynccontextmanager
async def closing_api(urls: list[str]) -> AsyncIterator[RemoteApi]:
    """The first member that answers."""
    api = RemoteApi(",".join(urls))
    try:
        yield api
    finally:
        await api.close()


def silence_end(times: list[float], at: float) -> float:
    """When the longest silence ended that ended after a moment."""
    pairs = [(b - a, b) for a, b in pairwise(times) if b > at]
    return max(pairs)[1]

"""The demo's tables: a pipeline beside the node fills them, and at the end they are asked."""

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.markup import escape

from holdfast.cli.demo.children import Crew
from holdfast.cli.demo.stage import Stage
from holdfast.cli.demo.tables_verdict import Found, TablesVerdict, reach_tables_verdict
from holdfast.cli.extras import check_installed
from holdfast.errors import DeadlineExceeded, Unavailable

if TYPE_CHECKING:
    from holdfast.cli.demo.tables_look import Looking, TablesLook
    from holdfast.cli.demo.verdict import Verdict

_LOOK_SECONDS = 0.25  # how often the tables are looked at
_STALL_SECONDS = 180  # nothing more in the tables in this time: something is stuck
_REPORT = "throughput"
_INCIDENTS = "incidents"  # the table
_SHOWN_ORDERS = 5


class TablesStory:
    """One pipeline, from its start to the answers; or none, where it cannot run."""

    def __init__(self, folder: Path, picture: Path, stage: Stage) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._root = self._data / "tables"
        self._picture = picture
        self._stage = stage
        self._crew: Crew | None = None
        self._watching: asyncio.Task[None] | None = None
        self._look: TablesLook | None = None
        self._found: Found | None = None
        self._node_ended: float | None = None
        self._caught_up_seconds = 0.0

    async def begin(self) -> None:
        """Starts Spark beside all else, when the node is up; says what is missing if it cannot."""
        try:
            await asyncio.to_thread(_check)
        except Unavailable as error:
            self._stage.say(f"no tables this time. {escape(str(error))}")
            return
        command = [
            sys.executable, "-m", "holdfast.cli.demo.tables_process",
            str(self._data), str(self._root), _REPORT,
        ]  # fmt: skip
        self._crew = Crew(self._folder, "pipeline", command)
        self._stage.say("Spark is starting: it will keep tables of all that happens")
        self._watching = asyncio.create_task(self._watch(self._crew))

    @property
    def are_kept(self) -> bool:
        """Whether Spark can run here."""
        return self._watching is not None

    async def until_level(self) -> None:
        """Waits until the tables have what has happened: from then on one sees them fill."""
        if self._watching is None:
            return
        self._stage.say("waiting for the tables to have all of this; then they are seen to fill")
        while self._look is None or not self._look.records or self._look.behind_records:
            await self._pause(self._watching)
        self._stage.say_tables(self._look)

    async def _pause(self, watching: "asyncio.Task[None]") -> None:
        """Until the next look; what makes looking fail, fails here."""
        if watching.done():
            await watching
        await asyncio.sleep(_LOOK_SECONDS)

    async def until_open(self, incidents: int) -> None:
        """Waits until the tables show that so many incidents are open: where a person sees them."""
        if self._watching is None:
            return
        self._stage.say(f"waiting for the tables to show {incidents:,} open incidents")
        while self._look is None or self._look.states[_INCIDENTS].get("OPEN", 0) != incidents:
            await self._pause(self._watching)
        self._stage.say_tables(self._look)

    def node_ended(self) -> None:
        """The log has its last record: what the tables have then is to stay."""
        self._node_ended = time.monotonic()

    async def finish(self) -> None:
        """Waits until the tables have all of the log; then a search, and a report that is drawn."""
        if self._crew is None or self._watching is None:
            return
        await self._watching
        self._found, _ = await asyncio.gather(
            asyncio.to_thread(_declined, self._root), asyncio.to_thread(self._draw, self._crew)
        )

    def verdict(self, verdict: "Verdict") -> TablesVerdict | None:
        """Compares what the tables say with what was counted otherwise; None without tables."""
        if self._look is None or self._found is None:
            return None
        return reach_tables_verdict(
            self._look, verdict, self._found, self._picture, self._caught_up_seconds
        )

    async def end(self) -> None:
        """Nothing of it is left, whatever happened."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._crew is not None:
            await asyncio.to_thread(self._crew.stop)

    def _draw(self, crew: Crew) -> None:
        crew.tell(str(self._folder))
        Path(crew.first_line().decode().strip()).replace(self._picture)

    async def _watch(self, crew: Crew) -> None:
        """Shows how the tables fill, until the node has ended and they have everything."""
        looking = await asyncio.to_thread(_looking, self._data, self._root)
        last_step, last_records = time.monotonic(), 0
        while True:
            node_ended = self._node_ended
            look = self._look = await asyncio.to_thread(looking.look)
            self._stage.tables(look)
            if node_ended is not None and not look.is_behind:
                self._caught_up_seconds = time.monotonic() - node_ended
                return
            crew.check()
            if look.records > last_records:
                last_step, last_records = time.monotonic(), look.records
            elif look.is_behind and time.monotonic() - last_step > _STALL_SECONDS:
                raise DeadlineExceeded(
                    f"Expected the tables to have the whole log, but they are"
                    f" {look.behind_records:,} records and {look.behind_messages:,} messages"
                    f" behind; see the logs in {self._folder}"
                )
            await asyncio.sleep(_LOOK_SECONDS)


def _check() -> None:
    """Unavailable, with what to install, where Spark cannot run."""
    from holdfast.pipeline.session import find_java

    check_installed()
    find_java()


def _looking(data: Path, root: Path) -> "Looking":
    """What reads Delta takes a moment to load: not in everybody's way."""
    from holdfast.cli.demo.tables_look import Looking
    from holdfast.pipeline.log import open_log

    return Looking(root, open_log(str(data)))


def _declined(root: Path) -> Found:
    """Which orders were declined? Their result says so."""
    from holdfast.pipeline.schema import PROCESS_INSTANCES
    from holdfast.pipeline.search.paging import PageRequest
    from holdfast.pipeline.search.search import Search
    from holdfast.pipeline.select.filters import read_filter

    search = Search(root)
    try:
        began = time.perf_counter()
        asked = read_filter(PROCESS_INSTANCES, {"result": {"$like": '*"declined":true*'}})
        answer = search.search(PROCESS_INSTANCES, asked, page=PageRequest(limit=_SHOWN_ORDERS))
        spent_ms = (time.perf_counter() - began) * 1000
    finally:
        search.close()
    orders = [msgspec.json.decode(item["result"])["order"] for item in answer.items]
    return Found(answer.page.total_items, sorted(orders), round(spent_ms, 1))

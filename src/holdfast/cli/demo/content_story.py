"""The demo's last act: a site goes to three subscribers; one is killed, one refuses a package."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.markup import escape

from holdfast.cli.demo.children import Child, holdfast
from holdfast.cli.demo.content_verdict import (
    KILLED,
    REFUSING,
    STEADY,
    SUBSCRIBERS,
    ContentAudit,
    ContentVerdict,
    HeldStore,
    SiteCourse,
    held_in,
    reach_content_verdict,
)
from holdfast.cli.demo.site import (
    FILM_BYTES,
    MENU_NUMBER,
    PACKAGES,
    PAGES,
    PUBLISHER,
    Publication,
    publications,
    site_after,
)
from holdfast.cli.demo.stage import Stage
from holdfast.client import Holdfast
from holdfast.content.repository.memory import MemoryRepository
from holdfast.errors import DeadlineExceeded
from holdfast.gateway.api import Api
from holdfast.gateway.content.shapes import QueueQuery, SubscriberView

_LOOK_SECONDS = 0.05  # how often the node is asked who is how far
_STALL_SECONDS = 60  # no step in this time: something is stuck
_KILL_AFTER = PACKAGES // 2  # packages
_RETRIES = "0"  # the first refusal puts a package into the error queue

Views = dict[str, SubscriberView]  # by the subscriber's name


class ContentStory:
    """One publisher in this process, and three subscribers in theirs."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self._folder = folder
        self._stage = stage
        self._stores = {
            STEADY: folder / f"{STEADY}.sqlite",
            KILLED: folder / f"{KILLED}.sqlite",
            REFUSING: folder / REFUSING,
        }
        self._edges: dict[str, Child] = {}
        self._is_time_to_kill = threading.Event()
        self._course = SiteCourse()

    async def run(self, api: Api, node: Child, url: str) -> None:
        """From the first package until every store is level; no subscriber is left behind."""
        began = time.monotonic()
        app = await asyncio.to_thread(Holdfast.connect, url, patience=_STALL_SECONDS)
        try:
            for name in SUBSCRIBERS:
                self._subscribe(name, url)
            await self._act(api, app, node, url)
        finally:
            self._is_time_to_kill.set()  # nobody waits for it any more
            await asyncio.gather(*(asyncio.to_thread(each.stop) for each in self._edges.values()))
            await asyncio.to_thread(app.close)
        self._course.seconds = time.monotonic() - began

    async def _act(self, api: Api, app: Holdfast, node: Child, url: str) -> None:
        packages = publications()
        await asyncio.to_thread(self._publish, app, packages[:1])
        self._stage.say(
            f"a site of {PAGES} pages and a film of {FILM_BYTES / 1e6:.0f} MB is published;"
            f" {STEADY} and {KILLED} take it into SQLite, {REFUSING} into a folder"
        )
        await self._until(api, node, lambda views: _all_have(views, 1))
        publishing = asyncio.to_thread(self._publish, app, packages[1:])
        _, held = await asyncio.gather(publishing, self._kill())
        await self._until(api, node, lambda views: views[STEADY].number == PACKAGES)
        self._stage.say(
            f"{PACKAGES} packages published: {STEADY} has all of them, {KILLED} is"
            f" {PACKAGES - held.number} behind and is started again"
        )
        self._subscribe(KILLED, url)
        await self._until(api, node, lambda views: views[KILLED].number == PACKAGES)
        self._stage.say(f"{KILLED} has gone on behind package {held.number}: it has all of them")
        await self._until(api, node, lambda views: _all_have(views, PACKAGES))
        await self._look_at_errors(api)

    def verdict(self, data: Path) -> ContentVerdict:
        """When the node and the subscribers are stopped."""
        stores = {name: held_in(place) for name, place in self._stores.items()}
        return reach_content_verdict(self._course, ContentAudit(data), stores)

    def _subscribe(self, name: str, url: str) -> None:
        """Editable, so that it says of every package what became of it."""
        command = holdfast(
            "content", "subscribe", name, "--of", PUBLISHER, "--into", str(self._stores[name]),
            "--retries", _RETRIES, "--editable", "--url", url,
        )  # fmt: skip
        self._edges[name] = Child(self._folder, name, command)

    def _publish(self, app: Holdfast, packages: Sequence[Publication]) -> None:
        """From a folder; only what no folder can hold comes from a repository."""
        site, menu = self._folder / "site", MemoryRepository()
        site.mkdir(exist_ok=True)
        from_folder = app.publisher(PUBLISHER, site)
        from_repository = app.publisher(PUBLISHER, menu)
        for each in packages:
            name = f"{PUBLISHER}-{each.number}"
            if each.number == MENU_NUMBER:
                each.put(menu)
                from_repository.add(each.path, package_id=name)
            elif each.is_deletion:
                each.write(site)
                from_folder.delete(each.path, package_id=name)
            else:
                each.write(site)
                from_folder.add(each.path, package_id=name)
            if each.number == _KILL_AFTER:
                self._is_time_to_kill.set()

    async def _kill(self) -> HeldStore:
        """In the middle of whatever it does while packages come; then its store is looked at."""
        await asyncio.to_thread(self._is_time_to_kill.wait)
        child = self._edges[KILLED]
        await asyncio.to_thread(child.kill)
        del self._edges[KILLED]
        held = await asyncio.to_thread(held_in, self._stores[KILLED])
        self._course.at_kill = held
        is_prefix = held.nodes == site_after(held.number)
        self._stage.say(
            f"[bold red]killed {KILLED}[/] (process {child.pid}, SIGKILL) while packages come; its"
            f" store is {'exactly' if is_prefix else '[bold red]not[/]'} packages 1 to"
            f" {held.number}"
        )
        return held

    async def _until(self, api: Api, node: Child, is_so: Callable[[Views], bool]) -> Views:
        """Asks the node who is how far, until it is so."""
        last_step, last_numbers = time.monotonic(), dict.fromkeys(SUBSCRIBERS, 0)
        while True:
            found = await api.content.subscribers(PUBLISHER)
            views = {view.name: view for view in found}
            if views.keys() == set(SUBSCRIBERS) and is_so(views):
                return views
            for child in (node, *self._edges.values()):
                child.check()
            numbers = {view.name: view.number for view in found}
            if numbers != last_numbers:
                last_step, last_numbers = time.monotonic(), numbers
            elif time.monotonic() - last_step > _STALL_SECONDS:
                raise DeadlineExceeded(
                    f"Expected the subscribers of {PUBLISHER} to take {PACKAGES} packages, but"
                    f" nothing moves at {numbers}; see the logs in {self._folder}"
                )
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look_at_errors(self, api: Api) -> None:
        """What a person sees who asks why a package is missing."""
        errors: dict[str, list[int]] = {}
        for name in SUBSCRIBERS:
            for item in (await api.content.errors(PUBLISHER, name, QueueQuery())).items:
                errors.setdefault(name, []).append(item.number)
                self._course.reason = item.reason
                self._stage.say(
                    f"{name} has all but package {item.number}, which it refuses:"
                    f" {escape(item.reason)}"
                )
                self._stage.say_command(f"holdfast content errors {PUBLISHER} {name}")
        self._course.errors = errors


def _all_have(views: Views, number: int) -> bool:
    return all(view.number >= number for view in views.values())

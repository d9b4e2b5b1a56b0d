"""What the log, the stores and an error queue say of the site, and whether it adds up."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.cli.demo.site import MENU_NUMBER, PACKAGES, PUBLISHER, Nodes, nodes_in, site_after
from holdfast.cli.journal.files import open_reader
from holdfast.content.messages import ImportOutcome, decode_package, decode_status
from holdfast.content.repository.opening import open_repository
from holdfast.content.subscriber.ledger import read_ledger
from holdfast.content.topics import PARTITION, ContentTopic

STEADY, KILLED, REFUSING = "edge-1", "edge-2", "edge-3"
SUBSCRIBERS = (STEADY, KILLED, REFUSING)


class HeldStore(NamedTuple):
    """What a subscriber's store holds: up to which package, by its own note, and which nodes."""

    number: int
    nodes: Nodes


class SiteCourse(msgspec.Struct):
    """What the story has seen of it."""

    at_kill: HeldStore | None = None  # of the subscriber that was killed
    errors: dict[str, list[int]] = {}  # by subscriber, the packages in its error queue
    reason: str = ""  # that the error queue gives
    seconds: float = 0.0


class ContentVerdict(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Everything that was counted of the site."""

    published: int
    imported: int  # packages, by all subscribers
    refused: int
    in_error_queues: int
    killed_after: int  # the last package in the store of the one that was killed
    nodes: int  # of all stores, compared
    lost: int
    doubled: int
    reason: str  # why a package was refused
    seconds: float
    faults: list[str]


class ContentAudit:
    """Counts what the topics of content have."""

    def __init__(self, data: Path) -> None:
        self._reader = open_reader(data)
        found = [decode_package(each) for each in self._payloads(ContentTopic.PACKAGES)]
        self.packages = Counter(each.number for each in found)
        self.outcomes: Counter[tuple[str, int, ImportOutcome]] = Counter()
        for payload in self._payloads(ContentTopic.STATUSES):
            status = decode_status(payload)
            self.outcomes[status.subscriber, status.number, status.outcome] += 1

    def _payloads(self, topic: ContentTopic) -> Iterator[bytes]:
        offset = 0
        while entries := self._reader.read_now(topic.topic, PARTITION, offset):
            yield from (entry.payload for entry in entries)
            offset = entries[-1].offset + 1


def held_in(place: Path) -> HeldStore:
    """Opens a store that nobody uses."""
    repository = open_repository(place)
    try:
        ledger = read_ledger(repository.get_note)
        number = 0 if ledger is None else ledger.progress_of(PUBLISHER).number
        return HeldStore(number, nodes_in(repository))
    finally:
        repository.close()


def reach_content_verdict(
    course: SiteCourse, audit: ContentAudit, stores: dict[str, HeldStore]
) -> ContentVerdict:
    """Compares the log package by package and the stores node by node."""
    wanted = {
        (name, number, _wanted_outcome(name, number))
        for name in SUBSCRIBERS
        for number in range(1, PACKAGES + 1)
    }
    differences = {name: _differences(name, store) for name, store in stores.items()}
    counted = (*audit.packages.values(), *audit.outcomes.values())
    imported = _total(audit, ImportOutcome.IMPORTED)
    at_kill = course.at_kill
    verdict = ContentVerdict(
        published=audit.packages.total(),
        imported=imported,
        refused=_total(audit, ImportOutcome.REMOVED_FAILED),
        in_error_queues=sum(map(len, course.errors.values())),
        killed_after=0 if at_kill is None else at_kill.number,
        nodes=sum(len(store.nodes) for store in stores.values()),
        lost=len(set(range(1, PACKAGES + 1)) - audit.packages.keys())
        + len(wanted - audit.outcomes.keys()),
        doubled=sum(count - 1 for count in counted),
        reason=course.reason,
        seconds=round(course.seconds, 1),
        faults=[],
    )
    strange = len(audit.outcomes.keys() - wanted) + len(audit.packages.keys() - _numbers(PACKAGES))
    checks = {
        f"{verdict.lost} packages of the site are lost": verdict.lost == 0,
        f"{verdict.doubled} packages of the site are doubled": verdict.doubled == 0,
        f"{strange} packages of the site had another outcome": not strange,
        f"the error queues name {course.errors} instead of package {MENU_NUMBER} of"
        f" {REFUSING}": course.errors == {REFUSING: [MENU_NUMBER]},
        f"{KILLED} held something else than packages 1 to {verdict.killed_after} when it was"
        " killed": at_kill is not None and at_kill.nodes == site_after(at_kill.number),
        **{
            f"the store of {name} is at package {stores[name].number} of {PACKAGES} and differs in"
            f" {' '.join(sorted(paths)) or 'nothing'}": (
                not paths and stores[name].number == PACKAGES
            )
            for name, paths in differences.items()
        },
    }
    faults = [fault for fault, holds in checks.items() if not holds]
    return msgspec.structs.replace(verdict, faults=faults)


def _numbers(last: int) -> set[int]:
    return set(range(1, last + 1))


def _wanted_outcome(subscriber: str, number: int) -> ImportOutcome:
    is_refused = (subscriber, number) == (REFUSING, MENU_NUMBER)
    return ImportOutcome.REMOVED_FAILED if is_refused else ImportOutcome.IMPORTED


def _total(audit: ContentAudit, outcome: ImportOutcome) -> int:
    return sum(count for (*_, each), count in audit.outcomes.items() if each is outcome)


def _differences(subscriber: str, store: HeldStore) -> set[str]:
    """The paths at which a store is not what was published."""
    wanted = site_after(PACKAGES, without=(MENU_NUMBER,) if subscriber == REFUSING else ())
    return {path for path, _ in wanted.items() ^ store.nodes.items()}

"""Where a node stands among others, and where its log is."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from holdfast.clock import Clock
from holdfast.gateway.far import Call
from holdfast.journal import DiskJournal, Journal
from holdfast.journal.local import LocalJournal
from holdfast.metrics import Metrics
from holdfast.partitions import Partitions
from holdfast.runtime import Runtime

OpenJournal: TypeAlias = Callable[[LocalJournal, Clock], Awaitable[DiskJournal]]
"""Makes a journal over the one in a member's folder; closing it closes that one, too."""

OpenElsewhere: TypeAlias = Callable[[Clock, Metrics], Awaitable[Journal]]
"""Opens a journal that is kept elsewhere, for all members: the folder has no files of it."""


class Place(Protocol):
    """Where a member stands among others: what it has, and how it reaches the rest."""

    @property
    def home(self) -> Path:
        """The folder of the whole node."""
        ...

    @property
    def own(self) -> Sequence[int]:
        """The partitions that the member opens when it starts; more may come, and go, later."""
        ...

    @property
    def far_content(self) -> Call | None:
        """The way to the member that has the topics of content; None: it is this one."""
        ...

    def around(self, runtime: Runtime) -> Partitions:
        """All partitions, as this member reaches them."""
        ...

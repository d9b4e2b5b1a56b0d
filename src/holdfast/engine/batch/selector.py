"""What batch operations need of a selector: items, a page at a time."""

from typing import Protocol

import msgspec

from holdfast.engine.batch.values import BatchOperation
from holdfast.errors import Unavailable


class ItemPage(msgspec.Struct, frozen=True, gc=False):
    """Some items of a partition."""

    items: tuple[int, ...]
    instances: tuple[int, ...] = ()  # whose items they are; (): they are instances, or of none
    next_cursor: str | None = None  # where the next page begins; None: there is none


class Selector(Protocol):
    """Finds the items of an operation in a stable snapshot.

    Every page is of the snapshot that `operation.selection` names, however often and from whichever
    partition it is asked for: the same cursor gives the same items, and no item comes twice. Only
    items of that partition, and only those that the claims of the operation's creator may see.

    Errors: a HoldfastError with FORBIDDEN, UNAUTHORIZED, NOT_FOUND or INVALID_ARGUMENT fails the
    partition at once; RESOURCE_EXHAUSTED asks for a smaller page; anything else is tried again.
    """

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        """At most so many items of a partition, from a cursor on; "" is the beginning."""
        ...


class NoSelector:
    """Where nothing is kept to select from."""

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        raise Unavailable(
            "This node keeps no tables to select items from; start it with --pipeline", lasting=1
        )

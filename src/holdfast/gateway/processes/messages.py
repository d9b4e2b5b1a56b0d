"""Messages: publish them to the instances that wait, and see those that are kept and who waits."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from holdfast.engine.kernel import Command
from holdfast.engine.kernel.others import others
from holdfast.engine.messages.queries import (
    FindWaiting,
    FoundMessage,
    FoundSubscription,
    FoundWaiting,
    ListMessages,
    ListStarts,
    ListSubscriptions,
)
from holdfast.engine.messages.values import MessageIntent
from holdfast.engine.messages.values import NewMessage as Message
from holdfast.engine.processes.variables import from_json
from holdfast.errors import InvalidArgument
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.processes.api import MessageApi
from holdfast.gateway.processes.shapes import (
    MessagePage,
    MessageQuery,
    MessageReceipt,
    MessageStartView,
    MessageSubscriptionPage,
    MessageSubscriptionQuery,
    MessageSubscriptionView,
    MessageView,
    NewMessage,
)
from holdfast.gateway.walk import walk
from holdfast.limits import MESSAGE_TTL_MS_MAX, PAGE_ITEMS_MAX, VARIABLES_BYTES_MAX
from holdfast.records import ValueType, partition_for, partition_of
from holdfast.records.keys import NO_KEY

# The partition that keeps a subscription, and the key behind which a page begins there: the key
# alone tells only the partition of the instance.
_CURSOR = re.compile(r"([0-9]{1,5})-([0-9]{1,19})", re.ASCII)


class MessageService(MessageApi):
    """What can be asked about messages."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    async def publish(self, new: NewMessage) -> MessageReceipt:
        """Durable when it returns; who waits for it gets it then."""
        message = message_of(new)
        partition = partition_for(message.correlation, self._asked.count)
        command = Command(ValueType.MESSAGE, MessageIntent.PUBLISH, NO_KEY, message)
        (reply,) = await self._asked.submit(partition, [command], len(message.variables))
        if error := reply.error():
            raise error
        return MessageReceipt(str(reply.key), [str(each) for each in reply.value])

    async def page(self, query: MessageQuery) -> MessagePage:
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        start = checks.key_after(query.after, self._asked.count, "message")
        found, last = await walk(
            self._asked, start, limit, lambda after, left: ListMessages(after, left, query.name)
        )
        return MessagePage([_message(each) for each in found], str(last) if last else None)

    async def starts(self) -> list[MessageStartView]:
        found = await self._asked.ask_any(ListStarts())
        return [
            MessageStartView(each.name, each.process_id, str(each.definition)) for each in found
        ]

    # --- who waits ----------------------------------------------------------------------------

    async def subscriptions(self, query: MessageSubscriptionQuery) -> MessageSubscriptionPage:
        """One correlation key is on one partition; all others are walked."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        last = self._asked.count
        partition, after = self._place(query.after)
        if query.correlation_key is not None:
            last = partition_for(query.correlation_key, self._asked.count)
            partition = max(partition, last)
        found: list[FoundSubscription] = []
        while partition <= last:
            await others()  # a partition that is here answers without a turn for anybody else
            asked = ListSubscriptions(
                after, limit - len(found), query.name, query.correlation_key, query.process_id
            )
            rows = await self._asked.ask(partition, asked)
            found += rows.items
            after = rows.next_after
            if len(found) == limit:
                break
            if not after:
                partition += 1
        cursor = f"{partition}-{after}" if len(found) == limit and after else None
        return MessageSubscriptionPage(await self._with_elements(found), cursor)

    def _place(self, after: str | None) -> tuple[int, int]:
        if after is None:
            return 1, 0
        found = _CURSOR.fullmatch(after)
        if found is None or not 1 <= int(found[1]) <= self._asked.count:
            raise InvalidArgument(
                f"Expected `after` as the page before gave it, but found {after!r}", field="after"
            )
        return int(found[1]), int(found[2])

    async def _with_elements(
        self, found: Sequence[FoundSubscription]
    ) -> list[MessageSubscriptionView]:
        """With the elements that wait, which are on the partitions of their instances."""
        keys: defaultdict[int, list[int]] = defaultdict(list)
        for each in found:
            keys[partition_of(each.key)].append(each.key)
        answers = await asyncio.gather(
            *(self._asked.ask(home, FindWaiting(tuple(some))) for home, some in keys.items())
        )
        waiting = {
            key: element
            for some, elements in zip(keys.values(), answers, strict=True)
            for key, element in zip(some, elements, strict=True)
        }
        return [_subscription(each, waiting[each.key]) for each in found]


def _message(found: FoundMessage) -> MessageView:
    return MessageView(
        str(found.key), found.name, found.correlation, found.message_id or None,
        checks.moment(found.published_ms), checks.moment(found.deadline_ms),
        found.size_bytes,
    )  # fmt: skip


def _subscription(
    found: FoundSubscription, waiting: FoundWaiting | None
) -> MessageSubscriptionView:
    view = MessageSubscriptionView(
        str(found.key), found.name, found.correlation, found.process_id, found.interrupting,
        offered_message_key=str(found.offered) if found.offered else None,
    )  # fmt: skip
    if waiting is None:
        return view
    return msgspec.structs.replace(
        view, process_instance_key=str(waiting.instance),
        element_instance_key=str(waiting.element), element_id=waiting.element_id,
    )  # fmt: skip


def message_of(new: NewMessage) -> Message:
    """A message as the engine has it."""
    variables = bytes(new.variables)
    checks.within(len(variables), 0, VARIABLES_BYTES_MAX, "bytes of variables")
    from_json(variables)
    return Message(
        checks.name(new.name, "message name"),
        checks.name(new.correlation_key, "correlation key") if new.correlation_key else "",
        variables,
        checks.optional_name(new.message_id, "message id"),
        checks.within(new.ttl_ms, 0, MESSAGE_TTL_MS_MAX, "ttlMs"),
    )

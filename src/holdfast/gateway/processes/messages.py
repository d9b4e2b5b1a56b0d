"""Messages: publish them to the instances that wait."""

from holdfast.engine.kernel import Command
from holdfast.engine.messages.values import MessageIntent
from holdfast.engine.messages.values import NewMessage as Message
from holdfast.engine.processes.variables import from_json
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.processes.api import MessageApi
from holdfast.gateway.processes.shapes import MessageReceipt, NewMessage
from holdfast.limits import MESSAGE_TTL_MS_MAX, VARIABLES_BYTES_MAX
from holdfast.records import ValueType, partition_for
from holdfast.records.keys import NO_KEY


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

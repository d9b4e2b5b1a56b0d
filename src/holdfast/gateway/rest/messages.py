"""Messages: publish them, or give one to the instance that waits for it now."""

import msgspec

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import one
from holdfast.gateway.api import Api
from holdfast.gateway.endpoint import Endpoint, endpoint, serves
from holdfast.gateway.processes.api import MessageApi
from holdfast.gateway.processes.shapes import MessagePublication, MessageReceipt, NewMessage
from holdfast.gateway.rest.common import TENANT, RestApi, check_tenant, object_of, refuse_given
from holdfast.gateway.shapes import Question, Shape, no_variables


class PublishedMessage(MessageReceipt, frozen=True):
    """The message is durable."""

    tenant_id: str = TENANT


class MessageCorrelation(Question, frozen=True):
    """A message for an instance that waits for it now, or that it starts."""

    name: str
    correlation_key: str = ""
    variables: msgspec.Raw = msgspec.field(default_factory=no_variables)
    tenant_id: str | None = None
    business_id: str | None = None


class CorrelatedMessage(Shape, frozen=True):
    """The message was correlated with an instance."""

    message_key: str
    process_instance_key: str
    tenant_id: str = TENANT


@serves(MessageApi.publish)
async def publish_message(api: Api, body: MessagePublication) -> PublishedMessage:
    """Publish a message."""
    check_tenant(body.tenant_id)
    refuse_given(businessId=body.business_id)
    message = NewMessage(
        body.name, body.correlation_key, object_of(body.variables, "variables"), body.message_id,
        body.time_to_live,
    )  # fmt: skip
    published = await api.messages.publish(message)
    return PublishedMessage(published.message_key, published.started_instance_keys)


@endpoint("POST", "/v2/messages/correlation", one(ResourceType.MESSAGE, Permission.CREATE))
async def correlate_message(api: RestApi, body: MessageCorrelation) -> CorrelatedMessage:
    """Give a message to an instance that waits for it, or start one by it; it is not kept."""
    check_tenant(body.tenant_id)
    refuse_given(businessId=body.business_id)
    waiting, can_start = await api.look.receiver(body.name, body.correlation_key)
    if waiting is None and not can_start:
        raise _nobody(body)
    variables = object_of(body.variables, "variables")
    published = await api.messages.publish(NewMessage(body.name, body.correlation_key, variables))
    if waiting is not None:
        return CorrelatedMessage(published.message_key, str(waiting))
    if not published.started_instance_keys:  # another message was faster
        raise _nobody(body)
    return CorrelatedMessage(published.message_key, published.started_instance_keys[0])


def _nobody(body: MessageCorrelation) -> NotFound:
    return NotFound(
        f"Expected an instance that waits for message {body.name!r} with key"
        f" {body.correlation_key!r}, or a process that it starts, but there is none; to keep a"
        " message for one that waits later, publish it"
    )


MESSAGE_ENDPOINTS: tuple[Endpoint, ...] = (publish_message, correlate_message)

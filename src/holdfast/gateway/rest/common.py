"""What the resources of the REST API have in common: tenants, searches, and what has no word here.

There are no tenants here, no business ids and no tags. The API has fields for them: an answer fills
them with what stands for none, a request that sets them is refused with the field's name, because
leaving out in silence what was asked for is worse.
"""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from holdfast.errors import InvalidArgument, error_of
from holdfast.gateway.api import Api
from holdfast.gateway.numbers import OperationReference
from holdfast.gateway.rest.look import NodeLook
from holdfast.gateway.rest.tables import SearchTables
from holdfast.gateway.shapes import Question, Shape
from holdfast.gateway.tasks.shapes import Answer
from holdfast.limits import CURSOR_CHARS_MAX, PAGE_ITEMS_MAX, PAGE_OFFSET_MAX

if TYPE_CHECKING:
    from holdfast.gateway.identity.sessions import SessionService

TENANT = "<default>"
NO_KEY = "-1"  # where the API wants a key and there is none


class RestApi(Api):
    """What the REST API is served from: a node that can be looked into, and its tables."""

    look: NodeLook
    tables: SearchTables
    sessions: "SessionService | None" = None  # of the console; None: nobody has to sign in


_CURSOR = {"type": "string", "maxLength": CURSOR_CHARS_MAX}
_PAGE = msgspec.Meta(
    extra_json_schema={
        "properties": {
            "limit": {"type": "integer", "minimum": 0, "maximum": PAGE_ITEMS_MAX},
            "from": {"type": "integer", "minimum": 0, "maximum": PAGE_OFFSET_MAX},
            "after": _CURSOR,
            "before": _CURSOR,
        },
        "additionalProperties": False,
    }
)


class SearchQuery(Question, frozen=True):
    """What to search for: a filter, an order and a page."""

    filter: dict[str, Any] = msgspec.field(default_factory=dict)
    sort: list[dict[str, Any]] = msgspec.field(default_factory=list)
    page: Annotated[dict[str, Any], _PAGE] = msgspec.field(default_factory=dict)


class PageAnswer(Shape, frozen=True):
    """The position of a page in the whole result."""

    total_items: int
    has_more_total_items: bool
    start_cursor: str | None
    end_cursor: str | None


class Reference(Question, frozen=True):
    """A number of the caller for its request. It is not stored."""

    operation_reference: OperationReference | None = None


def check_tenant(*tenants: str | None) -> None:
    """Only the one tenant that there is."""
    for tenant in tenants:
        if tenant not in (None, TENANT):
            raise InvalidArgument(
                f"Expected the tenant {TENANT}, as there are no others, but found {tenant!r}",
                field="tenantId",
            )


def refuse_given(**fields: Any) -> None:
    """Refuses what was asked for and cannot be done; the names are those of the request."""
    for field, value in fields.items():
        if value:
            raise InvalidArgument(
                f"Expected no {field}, as there is nothing here that it could mean, but found one",
                field=field,
            )


def raise_refusal(answer: Answer) -> None:
    """An answer about one item as an error, if it is one."""
    if answer.code is not None:
        raise error_of(answer.code, answer.message or "", key=answer.key)


def object_of(raw: msgspec.Raw, field: str) -> msgspec.Raw:
    """Variables: a JSON object; null is an empty one."""
    text = bytes(raw).strip()
    if text == b"null":
        text = b"{}"
    if not text.startswith(b"{"):
        raise InvalidArgument(f"Expected an object for {field}, but found other JSON", field=field)
    return msgspec.Raw(text)

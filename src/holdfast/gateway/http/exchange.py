"""One exchange on the wire: the request's body in, the answer's bytes out, with nothing in between.

Requests come by the thousand a second, so this speaks ASGI itself: the same handlers with
Litestar's own `data` and return values take almost three times as long (350 against 130 us).
"""

import re
from typing import Any
from urllib.parse import unquote

import msgspec
from litestar.exceptions import HTTPException, NotFoundException
from litestar.types import Receive, Scope, Send

from holdfast.errors import InvalidArgument
from holdfast.gateway.as_of import AsOf
from holdfast.gateway.endpoint import FORM, Endpoint
from holdfast.gateway.http.forms import parts_of
from holdfast.gateway.http.origins import READING, REQUESTED_WITH, is_from_program
from holdfast.gateway.operation import BYTES, JSON
from holdfast.json_words import said
from holdfast.limits import CONTENT_PIECE_BYTES_MAX

_JSON, _FORM, _BYTES = JSON.encode(), FORM.encode(), BYTES.encode()
# what a browser lets a page of another site send without asking that site
_SIMPLE = (b"text/plain", b"application/x-www-form-urlencoded", _FORM)

_PLACE = re.compile(r" - at `\$\.(.+)`$")  # how msgspec names one


class Disconnected(Exception):
    """The client is gone; there is nobody to answer."""


def check_sender(endpoint: Endpoint, headers: dict[bytes, bytes]) -> None:
    """Refuses whatever may act and could have been sent by a form of a web page.

    Without leave a browser sends neither JSON nor bytes to another site, nor headers of a page's
    choice.
    """
    media_type = headers.get(b"content-type", b"").lower()
    if endpoint.method in READING or media_type.startswith(_JSON):
        return
    if endpoint.request is bytes:
        expected = not media_type.startswith(_BYTES) and f"content-type {BYTES}"
    elif endpoint.form is not None and media_type.startswith(_FORM):
        expected = not is_from_program(headers) and f"the header {REQUESTED_WITH.decode()} too"
    elif _has_content(endpoint, headers) or media_type.startswith(_SIMPLE):
        expected = f"content-type {JSON}{f' or {FORM}' if endpoint.form else ''}"
    else:
        is_proven = bool(media_type) or is_from_program(headers)
        expected = not is_proven and f"content-type {JSON} or the header {REQUESTED_WITH.decode()}"
    if expected:
        found = media_type.decode("latin-1") or "none"
        raise HTTPException(
            f"Expected {expected}, but found content-type {found}: a web page can send that",
            status_code=415,
        )


def _has_content(endpoint: Endpoint, headers: dict[bytes, bytes]) -> bool:
    return (
        headers.get(b"content-length", b"0") != b"0"
        or b"transfer-encoding" in headers
        or (endpoint.decoder is not None and not endpoint.may_be_empty)
    )


async def body_of(
    endpoint: Endpoint, headers: dict[bytes, bytes], receive: Receive, bytes_max: int
) -> Any:
    """What the request brings, as the endpoint's shape; None where it may bring nothing."""
    media_type = headers.get(b"content-type", b"")
    length = int(headers.get(b"content-length", b"0"))
    if endpoint.may_be_empty and not length and b"transfer-encoding" not in headers:
        return None
    if endpoint.request is bytes:
        return await _read(receive, length, min(bytes_max, CONTENT_PIECE_BYTES_MAX))
    content = await _read(receive, length, bytes_max)
    if endpoint.form is not None and media_type.lower().startswith(_FORM):
        return endpoint.form(parts_of(media_type, content))
    return _decoded(endpoint, content)


async def _read(receive: Receive, length: int, bytes_max: int) -> bytes:
    """The whole body of a request, refused as soon as it is known to be too large."""
    _check_length(length, bytes_max)
    chunks: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Disconnected
        chunks.append(message["body"])
        length += len(message["body"])
        _check_length(length, bytes_max)  # a body in chunks does not say its length before
        if not message["more_body"]:
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _check_length(length: int, bytes_max: int) -> None:
    if length > bytes_max:
        raise HTTPException(
            f"Expected a body of at most {bytes_max} bytes, but found more; send it in parts",
            status_code=413,
        )


def _decoded(endpoint: Endpoint, body: bytes) -> Any:
    """A JSON body as the endpoint's shape; an error names the field."""
    assert endpoint.decoder is not None and endpoint.request is not None
    try:
        if not body.isascii():
            body.decode()  # payloads pass unread, and must not carry what their worker cannot read
        return endpoint.decoder.decode(body)
    except RecursionError as error:
        raise InvalidArgument("Expected JSON, but it is nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(
            f"The request body does not match {endpoint.request.__name__}: {said(error)}",
            **_field(error),
        ) from error


def _field(error: Exception) -> dict[str, str]:
    """Which field of the body is wrong, where the error says so."""
    found = _PLACE.search(str(error))
    return {"field": found[1]} if found else {}


def parameters_of(endpoint: Endpoint, scope: Scope) -> list[str]:
    """What the request's path names; an encoded slash belongs to the name."""
    found = endpoint.pattern.fullmatch(scope["raw_path"].decode("latin-1"))
    if found is None:
        raise NotFoundException  # such as doubled slashes, that the router overlooks
    return [unquote(each) for each in found.groups()]


def as_of_headers(as_of: AsOf) -> list[tuple[bytes, bytes]]:
    """How old an answer from the tables is."""
    time = as_of.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return [
        (b"holdfast-as-of", time.encode()),
        (b"holdfast-records-behind", b"%d" % as_of.records_behind),
    ]


async def send_answer(
    send: Send, status: int, media_type: str, body: bytes, as_of: AsOf | None = None
) -> None:
    """Sends the answer in one piece; one from the tables says as of when it is."""
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", media_type.encode())]
    if as_of is not None:
        headers += as_of_headers(as_of)
    if status == 204:
        headers.clear()  # nothing follows, so nothing may be said of it
    await send({"type": "http.response.start", "status": status, "headers": headers})  # pyright: ignore[reportArgumentType]
    await send({"type": "http.response.body", "body": body, "more_body": False})

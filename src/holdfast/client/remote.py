"""A node over HTTP: the same Api as a node in the process, made from the table of operations."""

import asyncio
import os
import re
import ssl
import uuid
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from enum import StrEnum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, unquote

import aiohttp
import msgspec
from yarl import URL

from holdfast.client.addresses import Addresses
from holdfast.client.patience import persistently
from holdfast.client.retry_after import foreign_error, span_ms_of
from holdfast.clock import SystemClock
from holdfast.errors import (
    Code,
    DeadlineExceeded,
    HoldfastError,
    Internal,
    InvalidArgument,
    Moved,
    Unavailable,
    Unknown,
)
from holdfast.errors import error_of as error_of_code
from holdfast.gateway.api import SPACES, Api, namespace
from holdfast.gateway.node.shapes import Topology
from holdfast.gateway.operation import BYTES, Namespace, Operation, Piece, operations_of
from holdfast.gateway.shapes import Problem

TOKEN_VARIABLE = "HOLDFAST_TOKEN"
CA_VARIABLE = "HOLDFAST_CA"
CONNECTIONS_MAX = 128
LONG_POLLS_MAX = 96  # the rest of the connections is for requests that do not wait behind them
KEEP_ALIVE_S = 30  # shorter than the server's, so that no request goes to a connection it closes
CONNECT_S_MAX = 5
ANSWER_S_MAX = 30  # beyond the time that the request itself asks the node to wait
FAILOVER_PAUSE_S_MAX = 0.5  # between attempts at members: a take-over takes as long
LEARN_S = 30  # how often a client asks who the members are
REQUEST_ID_HEADER = "holdfast-request-id"
_EXCERPT_CHARS = 200

_Shape = TypeVar("_Shape")
_Body = msgspec.Struct | bytes | None
_encode = msgspec.json.Encoder().encode


class _Answered(NamedTuple):
    content: bytes
    headers: Mapping[str, str]


class _NotConnected(Unavailable):
    """Nobody listens there: nothing was sent."""


class RemoteApi(Api):
    """The Api of the node at a URL, or of a cluster at several.

    It belongs to the event loop in which it is first used. It does not try again: after an
    `Unavailable` or a `DeadlineExceeded` the caller knows whether the request may be sent twice.
    Only aiohttp itself repeats a GET, PUT or DELETE, once, when a kept connection proves closed.

    Of several addresses the next one is tried when one is away. What is to be done once carries an
    id then, by which the members know it again, and is sent until it is answered, for
    `patience_s`; a long poll is not, since its caller asks again anyway.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca: str | os.PathLike[str] | None = None,
        verify: bool = True,
        patience_s: float = 10.0,
    ) -> None:
        """A token says who asks; so do a name and a password in the URL, or `HOLDFAST_TOKEN`.

        A node at https:// is trusted if its certificate is signed by an authority that this machine
        trusts, or by one in the file `ca` or `HOLDFAST_CA` (PEM); with `verify=False`, always.
        """
        self.addresses = Addresses(url)
        self._patience_s = patience_s
        self._learning: asyncio.Task[None] | None = None
        self._learn_at = 0.0  # of the loop
        self._headers = _credentials(self.addresses.first, token)
        # by its content type the node knows that no web page sent a request, also without a body
        self._acting_headers = {"Content-Type": "application/json", **self._headers}
        self._trust = _trust(ca or os.environ.get(CA_VARIABLE), verify)
        self._session: aiohttp.ClientSession | None = None
        self._long_polls = asyncio.Semaphore(LONG_POLLS_MAX)
        self._closed = False

    if not TYPE_CHECKING:  # what there is and of which type, the Api says

        def __getattr__(self, space: str) -> Namespace:
            """A namespace, made from the table of operations when it is first asked for."""
            if space not in SPACES:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {space!r}")
            made = _remote(namespace(space))(self)
            setattr(self, space, made)
            return made

    @property
    def url(self) -> str:
        """Where requests go at the moment."""
        return self.addresses.url

    async def close(self) -> None:
        """Closes the connections; requests that wait for their answer fail as `Unavailable`."""
        self._closed = True
        if self._learning is not None:
            self._learning.cancel()
        if self._session is not None:
            await self._session.close()

    async def send(
        self, method: str, path: str, body: _Body, wait_ms: int = 0, is_poll: bool = False
    ) -> bytes:
        """The content of the answer to one request; a problem is raised as the error it tells."""
        headers = self._headers if method == "GET" else self._acting_headers
        if isinstance(body, bytes):
            headers = {**headers, "Content-Type": BYTES}
        content = body if body is None or isinstance(body, bytes) else _encode(body)
        async with self._long_polls if wait_ms > 0 else nullcontext():
            answer = await self._exchange(method, path, content, headers, wait_ms, is_poll)
        return answer.content

    async def fetch(self, path: str, start: int, bytes_max: int) -> Piece:
        """A part of something large; with 0 bytes only how large it is."""
        last = start + max(bytes_max, 1) - 1
        asked = {**self._headers, "Range": f"bytes={start}-{last}"}
        try:
            answer = await self._exchange("GET", path, None, asked, 0)
        except InvalidArgument as error:
            # Of nothing there is no part, but its size is known.
            if bytes_max == 0 and error.fields.get("size_bytes") == 0:
                return Piece(b"", 0)
            raise
        _, _, size = answer.headers.get("Content-Range", "").rpartition("/")
        if not size.isdigit():
            raise Internal(f"Expected a part of {path} from {self.url}, but found all of it")
        return Piece(answer.content[:bytes_max], int(size))

    def decoded(self, content: bytes, shape: type[_Shape]) -> _Shape:
        """An answer as the shape that it should have."""
        try:
            return _decoder(shape).decode(content)
        except msgspec.DecodeError as error:
            raise Internal(
                f"Expected {shape.__name__} from {self.url}, but found {_excerpt(content)}: {error}"
            ) from error

    async def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        wait_ms: int,
        is_poll: bool = False,
    ) -> _Answered:
        """The answer to one request, by whichever member gives one."""
        if not self.addresses.are_several:
            return await self._exchange_once(method, path, content, headers, wait_ms)
        is_repeatable = method == "GET" or not is_poll or wait_ms <= 0
        if method != "GET" and is_repeatable:
            headers = {**headers, REQUEST_ID_HEADER: uuid.uuid4().hex}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        answer = await persistently(
            partial(self._exchange_once, method, path, content, headers, wait_ms),
            _not_sent_or_repeatable if is_repeatable else _not_sent,
            lambda pause_s: loop.time() + pause_s > deadline,
            pause_s_max=FAILOVER_PAUSE_S_MAX,
        )
        if self._learning is None and loop.time() >= self._learn_at:
            self._learn_at = loop.time() + LEARN_S
            self._learning = loop.create_task(self._learn())
        return answer

    async def _learn(self) -> None:
        """Asks one member who the others are, as an address that was given may be gone one day."""
        try:
            answer = await self._exchange_once("GET", "/v2/topology", None, self._headers, 0)
            members = self.decoded(answer.content, Topology).members
            self.addresses.learn(each.url for each in members)
        except HoldfastError:
            pass  # it is asked again
        finally:
            self._learning = None

    async def _exchange_once(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        wait_ms: int,
    ) -> _Answered:
        """The answer of the member that is asked at the moment; the next one after it is away."""
        url = self.url
        try:
            return await self._ask(url, method, path, content, headers, wait_ms)
        except (Unavailable, Unknown, Moved, DeadlineExceeded):
            self.addresses.failed(url)
            raise

    async def _ask(
        self,
        url: str,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        wait_ms: int,
    ) -> _Answered:
        seconds = ANSWER_S_MAX + wait_ms / 1_000
        try:
            async with self._open_session().request(
                method,
                URL(url + path, encoded=True),
                data=content,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_S_MAX),
                allow_redirects=False,
            ) as response:
                answer = _Answered(await response.read(), response.headers)
                if response.status >= 400:
                    raise self._error_of(response.status, answer)
                return answer
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            reason = f"did not connect within {CONNECT_S_MAX} s"
            if isinstance(error, aiohttp.ClientConnectorError):
                reason = str(error)
            raise _NotConnected(f"Expected a node at {url}, but {reason}", url=url) from error
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"Expected an answer from {url} within {seconds:g} s, but none came", url=url
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            reason = "the client was closed" if self._closed else str(error) or repr(error)
            raise self._unavailable(reason) from error

    def _open_session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise self._unavailable("the client was closed")
        if self._session is None:  # made here because it belongs to the loop that runs now
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=CONNECTIONS_MAX, keepalive_timeout=KEEP_ALIVE_S, ssl=self._trust
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept-Encoding", "User-Agent"),
            )
        return self._session

    def _error_of(self, status: int, answer: _Answered) -> HoldfastError:
        content, when = answer.content, answer.headers.get("Retry-After")
        when_ms = None if when is None else span_ms_of(when, SystemClock())
        try:
            problem = _decoder(Problem).decode(content)
        except msgspec.DecodeError:
            # not from a node: a proxy before it, or another server at its place
            found = f"status {status}: {_excerpt(content)}"
            return foreign_error(
                status, f"Expected a node at {self.url}, but found {found}", when_ms
            )
        fields = dict(problem.fields)
        if problem.retry_after_ms is not None:
            fields["retry_after_ms"] = problem.retry_after_ms
        elif problem.code == Code.RESOURCE_EXHAUSTED and when_ms is not None:
            fields["retry_after_ms"] = when_ms  # it was refused before it was read
        return error_of_code(problem.code, problem.detail, **fields)

    def _unavailable(self, reason: str) -> Unavailable:
        return Unavailable(f"Expected a node at {self.url}, but {reason}", url=self.url)


def _not_sent(error: BaseException) -> bool:
    """Nothing reached a member, or it says that nothing was done."""
    return isinstance(error, _NotConnected | Moved)


def _not_sent_or_repeatable(error: BaseException) -> bool:
    """It may have been done, but a member that has done it knows it again."""
    return isinstance(error, Unavailable | Unknown | Moved)


# --- namespaces -------------------------------------------------------------------------------


@cache
def _remote(declared: type[Namespace]) -> Callable[[RemoteApi], Namespace]:
    """A namespace whose every operation is a request, as its entry in the table says."""
    methods = {name: _asking(entry) for name, entry in operations_of(declared)}
    return type(f"Remote{declared.__name__}", (_RemoteNamespace, declared), methods)


class _RemoteNamespace:
    def __init__(self, api: RemoteApi) -> None:
        self.api = api


def _asking(entry: Operation) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The method that sends the request of an operation."""
    names = entry.arguments
    shape = entry.result
    field = entry.answer.__struct_fields__[0] if entry.answer else None

    async def ask(self: _RemoteNamespace, *given: Any, **named: Any) -> Any:
        if named or len(given) != len(names):
            bound = entry.signature.bind(self, *given, **named)
            bound.apply_defaults()
            given = bound.args[1:]
        arguments = dict(zip(names, given, strict=True))
        if entry.is_ranged:
            return await self.api.fetch(_path(entry, arguments), *given[-2:])
        body = _body(entry, arguments)
        wait_ms = body.wait_ms if entry.waits else entry.takes_ms(body) if entry.takes_ms else 0
        path = _path(entry, arguments) if entry.in_path else entry.path
        content = await self.api.send(entry.method, path, body, wait_ms, entry.waits)
        if shape is None or shape is bytes:
            return None if shape is None else content
        answer = self.api.decoded(content, shape)
        return answer if field is None else getattr(answer, field)

    return ask


def _body(entry: Operation, arguments: dict[str, Any]) -> Any:
    if entry.body is None:
        return arguments[entry.in_body[0]] if entry.in_body else None
    if not entry.spreads:
        return entry.body(*arguments.values())
    return entry.body(**{name: _listed(arguments[name]) for name in entry.in_body})


def _listed(value: Any) -> Any:
    """A sequence of any kind as a list, which can be written as JSON."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _path(entry: Operation, arguments: dict[str, Any]) -> str:
    """The path with what it names in it."""

    def part(found: re.Match[str]) -> str:
        name, _, attribute = found[1].partition(".")
        value = getattr(arguments[name], attribute) if attribute else arguments[name]
        return quote(value.lower() if isinstance(value, StrEnum) else value, safe="")

    return _PART.sub(part, entry.path)


_PART = re.compile(r"{([\w.]+)}")


# --- who asks, and who is trusted -------------------------------------------------------------


def _credentials(parts: SplitResult, token: str | None) -> dict[str, str]:
    """The header by which a request says who asks; none where nobody has to say."""
    if token is None and parts.username is not None:
        said = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return {"Authorization": f"Basic {b64encode(said.encode()).decode()}"}
    if token == "":
        raise InvalidArgument("Expected a token, but found an empty one; leave it out for none")
    token = token or os.environ.get(TOKEN_VARIABLE)
    return {"Authorization": f"Bearer {token}"} if token else {}


def _trust(ca: str | os.PathLike[str] | None, verify: bool) -> ssl.SSLContext | bool:
    """Whose certificates are good enough; True: those that this machine trusts."""
    if not verify or ca is None:
        return verify
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise InvalidArgument(
            f"Expected certificates of authorities (PEM) in {os.fspath(ca)}, but {error}"
        ) from error


@cache
def _decoder(shape: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)


def _excerpt(content: bytes) -> str:
    return content[:_EXCERPT_CHARS].decode(errors="replace") or "nothing"

"""A node over HTTP: the same Api as a node in the process, made from the table of operations."""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import aiohttp
import msgspec
from yarl import URL

from holdfast.client.addresses import Addresses
from holdfast.client.patience import again, over_after
from holdfast.client.reasons import connect_reason
from holdfast.client.remote_spaces import remote_namespace
from holdfast.client.retry_after import foreign_error, span_ms_of
from holdfast.client.trust import CA_VARIABLE, credentials, trusted
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
from holdfast.gateway.operation import BYTES, Namespace, Operation, Piece, Resend
from holdfast.gateway.shapes import Problem

CONNECTIONS_MAX = 128
LONG_POLLS_MAX = 96  # the rest of the connections is for requests that do not wait behind them
KEEP_ALIVE_S = 30  # shorter than the server's, so that no request goes to a connection it closes
CONNECT_S_MAX = 5
ANSWER_S_MAX = 30  # beyond the time that the request itself asks the node to wait
FAILOVER_PAUSE_S_MAX = 0.5  # between attempts at members: a take-over takes as long
CLUSTER_PATIENCE_S = 10.0  # a member is given up and taken over in less
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


class _Lost(Unavailable):
    """The connection broke before the answer came: the request may have been done."""


class RemoteApi(Api):
    """The Api of the node at a URL, or of a cluster at several.

    It belongs to the event loop in which it is first used. A node that is away, as while it
    restarts, is asked again for `patience_s`; of several addresses the next one is tried. What is
    to be done once carries a request id then, by which the node recognises it. If it is not known
    in the end whether it was done, `Unknown` says so.

    What workers ask for and report is sent once to a single node, and so is a long poll: their
    callers know better when to ask again. aiohttp itself repeats a GET, PUT or DELETE, once, when
    a kept connection proves closed.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca: str | os.PathLike[str] | None = None,
        verify: bool = True,
        patience_s: float | None = None,
        waits_for_start: bool = True,
    ) -> None:
        """A token says who asks; so do a name and a password in the URL, or `HOLDFAST_TOKEN`.

        A node at https:// is trusted if its certificate is signed by an authority that this machine
        trusts, or by one in the file `ca` or `HOLDFAST_CA` (PEM); with `verify=False`, always.
        Without `patience_s` a single node is asked once, and a cluster for 10 seconds. With
        `waits_for_start=False` a single node that was never reached is not waited for.
        """
        self.addresses = Addresses(url)
        own = CLUSTER_PATIENCE_S if self.addresses.are_several else 0.0
        self.patience_s = own if patience_s is None else patience_s
        self._is_known = waits_for_start  # that there is a node at the address
        self._learning: asyncio.Task[None] | None = None
        self._learn_at = 0.0  # of the loop
        self._headers = credentials(self.addresses.first, token)
        # by its content type the node knows that no web page sent a request, also without a body
        self._acting_headers = {"Content-Type": "application/json", **self._headers}
        self._trust = trusted(ca or os.environ.get(CA_VARIABLE), verify)
        self._session: aiohttp.ClientSession | None = None
        self._long_polls = asyncio.Semaphore(LONG_POLLS_MAX)
        self._closed = False

    if not TYPE_CHECKING:  # what there is and of which type, the Api says

        def __getattr__(self, space: str) -> Namespace:
            """A namespace, made from the table of operations when it is first asked for."""
            if space not in SPACES:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {space!r}")
            made = remote_namespace(namespace(space))(self)
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

    def is_passing(self, error: HoldfastError) -> bool:
        """Whether the node may be back soon: it restarts, or a partition moves."""
        return self._may_resend(error, Resend.FREELY)

    async def send(
        self, entry: Operation, path: str, body: _Body, wait_ms: int, resend: Resend
    ) -> bytes:
        """The content of the answer to one request; a problem is raised as the error it tells."""
        headers = self._headers if entry.method == "GET" else self._acting_headers
        if isinstance(body, bytes):
            headers = {**headers, "Content-Type": BYTES}
        content = body if body is None or isinstance(body, bytes) else _encode(body)
        how = None if entry.waits and wait_ms > 0 else resend
        async with self._long_polls if wait_ms > 0 else nullcontext():
            answer = await self._exchange(entry.method, path, content, headers, wait_ms, how)
        return answer.content

    async def fetch(self, path: str, start: int, bytes_max: int) -> Piece:
        """A part of something large; with 0 bytes only how large it is."""
        last = start + max(bytes_max, 1) - 1
        asked = {**self._headers, "Range": f"bytes={start}-{last}"}
        try:
            answer = await self._exchange("GET", path, None, asked, 0, Resend.FREELY)
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
        resend: Resend | None,
    ) -> _Answered:
        """The answer to one request, by any member, once one is there. For a long poll: None."""
        are_several = self.addresses.are_several
        is_patient = self.patience_s > 0 and resend not in (None, Resend.BY_LEASE)
        if (are_several or is_patient) and resend in (Resend.BY_ID, Resend.BY_LEASE):
            headers = {**headers, REQUEST_ID_HEADER: uuid.uuid4().hex}
        exchange = partial(self._exchange_once, method, path, content, headers, wait_ms)
        try:  # mostly it succeeds
            answer = await exchange()
        except HoldfastError as error:
            seconds = self.patience_s if are_several or is_patient else 0.0
            answer = await self._again(exchange, error, f"{method} {path}", resend, seconds)
        if are_several:
            self._learn_later()
        return answer

    async def _again(
        self,
        exchange: Callable[[], Awaitable[_Answered]],
        error: HoldfastError,
        request: str,
        resend: Resend | None,
        seconds: float,
    ) -> _Answered:
        """The answer to a request that has failed once, if it may be sent again."""
        is_lost = False

        def may_resend(error: BaseException) -> bool:
            nonlocal is_lost
            is_lost = is_lost or isinstance(error, _Lost)
            return isinstance(error, HoldfastError) and self._may_resend(error, resend)

        try:
            if not may_resend(error) or seconds <= 0:
                raise error
            return await again(
                exchange, error, may_resend, over_after(seconds), FAILOVER_PAUSE_S_MAX
            )
        except Unavailable as last:
            if is_lost and resend not in (None, Resend.FREELY):
                raise self._unknown(request, last) from last
            raise

    def _may_resend(self, error: HoldfastError, resend: Resend | None) -> bool:
        if self._closed:
            return False
        if isinstance(error, _NotConnected):  # nothing was sent
            return self._is_known or self.addresses.are_several
        if isinstance(error, Moved):  # nothing was done
            return True
        if resend in (None, Resend.NEVER) or error.fields.get("lasting"):
            return False
        return isinstance(error, Unavailable | Unknown)

    def _learn_later(self) -> None:
        loop = asyncio.get_running_loop()
        if self._learning is None and loop.time() >= self._learn_at:
            self._learn_at = loop.time() + LEARN_S
            self._learning = loop.create_task(self._learn())

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
                self._is_known = True
                answer = _Answered(await response.read(), response.headers)
                if response.status >= 400:
                    raise self._error_of(response.status, answer)
                return answer
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            reason = f"no connection within {CONNECT_S_MAX} s"
            if isinstance(error, aiohttp.ClientConnectorError):
                reason = connect_reason(error)
            raise _NotConnected(f"Cannot reach the node at {url}: {reason}", url=url) from error
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"The node at {url} did not answer within {seconds:g} s", url=url
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            self._is_known = True  # a connection that broke had been made
            reason = "the client was closed" if self._closed else str(error) or repr(error)
            raise _Lost(f"Lost the node at {url}: {reason}", url=url) from error

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
            message = f"Expected a node at {self.url}, but found {found}"
            if status in (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT):
                return _Lost(message, url=self.url)  # it does not tell how far the request came
            return foreign_error(status, message, when_ms)
        fields = dict(problem.fields)
        if problem.retry_after_ms is not None:
            fields["retry_after_ms"] = problem.retry_after_ms
        elif problem.code == Code.RESOURCE_EXHAUSTED and when_ms is not None:
            fields["retry_after_ms"] = when_ms  # it was refused before it was read
        return error_of_code(problem.code, problem.detail, **fields)

    def _unknown(self, request: str, error: HoldfastError) -> Unknown:
        return Unknown(
            f"The connection broke before the answer to {request} came: {error.message}. It"
            " may have been done: check that before you repeat it. What has a key of its own can be"
            " repeated at once",
            url=self.url,
        )

    def _unavailable(self, reason: str) -> Unavailable:
        return Unavailable(f"Cannot ask the node at {self.url}: {reason}", url=self.url)


@cache
def _decoder(shape: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)


def _excerpt(content: bytes) -> str:
    return content[:_EXCERPT_CHARS].decode(errors="replace") or "nothing"

"""A node over HTTP: the same Api as a node inside the process."""

import asyncio
import os
import ssl
from base64 import b64encode
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

import aiohttp
import msgspec
from yarl import URL

from holdfast.client.remote_batches import RemoteBatches
from holdfast.client.remote_distributions import RemoteDistributions
from holdfast.client.remote_identity import RemoteIdentity
from holdfast.client.remote_journal import RemoteJournal
from holdfast.client.remote_processes import RemoteProcesses
from holdfast.client.retry_after import foreign_error, span_ms_of
from holdfast.client.wire import quoted
from holdfast.clock import SystemClock
from holdfast.errors import (
    Code,
    DeadlineExceeded,
    HoldfastError,
    Internal,
    InvalidArgument,
    Unavailable,
)
from holdfast.errors import error_of as error_of_code
from holdfast.gateway.node_shapes import Health, Topology
from holdfast.gateway.shapes import Problem
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivatedJobs,
    ActivationRequest,
    Answer,
    Answers,
    HeldJob,
    HeldJobs,
    IncidentPage,
    IncidentQuery,
    IncidentResolution,
    JobCompletion,
    JobCompletions,
    JobFailure,
    JobFailures,
    LeaseExtension,
    NewSchedule,
    NewTask,
    NewTasks,
    ResultQuery,
    Schedules,
    ScheduleView,
    TaskOutcome,
    TaskOutcomes,
    TaskPage,
    TaskQuery,
    TaskReceipt,
    TaskReceipts,
    TaskView,
)

TOKEN_VARIABLE = "HOLDFAST_TOKEN"
CA_VARIABLE = "HOLDFAST_CA"
CONNECTIONS_MAX = 128
LONG_POLLS_MAX = 96  # the rest of the connections is for requests that do not wait behind them
KEEP_ALIVE_S = 30  # shorter than the server's, so that no request goes to a connection it closes
CONNECT_S_MAX = 5
ANSWER_S_MAX = 30  # beyond the time that the request itself asks the node to wait
_EXCERPT_CHARS = 200

_Shape = TypeVar("_Shape")
_encode = msgspec.json.Encoder().encode


class RemoteApi(RemoteProcesses, RemoteDistributions, RemoteBatches, RemoteJournal):
    """The Api of the node at a URL.

    It belongs to the event loop in which it is first used. It does not try again: after an
    `Unavailable` or a `DeadlineExceeded` the caller knows whether the request may be sent twice.
    Only aiohttp itself repeats a GET, PUT or DELETE, once, when a kept connection proves closed.
    """

    access = None  # the node decides whom it lets in

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca: str | os.PathLike[str] | None = None,
        verify: bool = True,
    ) -> None:
        """A token says who asks; so do a name and a password in the URL, or `HOLDFAST_TOKEN`.

        A node at https:// is trusted if its certificate is signed by an authority that this machine
        trusts, or by one in the file `ca` or `HOLDFAST_CA` (PEM); with `verify=False`, always.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArgument(
                f"Expected a URL such as http://127.0.0.1:8080, but found {url!r}"
            )
        self.identity = RemoteIdentity(self)
        self.url = url.rstrip("/")
        self._headers = _credentials(parts, token)
        # by its content type the node knows that no web page sent a request, also without a body
        self._acting_headers = {"Content-Type": "application/json", **self._headers}
        if parts.username is not None:  # they are not part of where it is, and not to be shown
            self.url = self.url.replace(f"{parts.netloc.rpartition('@')[0]}@", "", 1)
        self._trust = _trust(ca or os.environ.get(CA_VARIABLE), verify)
        self._session: aiohttp.ClientSession | None = None
        self._long_polls = asyncio.Semaphore(LONG_POLLS_MAX)
        self._closed = False

    async def submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        return (await self._post("/v2/tasks/batch", NewTasks(list(tasks)), TaskReceipts)).tasks

    async def task(self, task_key: str) -> TaskView:
        return await self._get(f"/v2/tasks/{quoted(task_key)}", TaskView)

    async def tasks(self, query: TaskQuery) -> TaskPage:
        return await self._post("/v2/tasks/search", query, TaskPage)

    async def results(self, task_keys: Sequence[str], wait_ms: int) -> list[TaskOutcome]:
        query = ResultQuery(list(task_keys), wait_ms)
        return (await self._post("/v2/tasks/results", query, TaskOutcomes, wait_ms)).tasks

    async def cancel(self, task_key: str) -> None:
        await self._send("POST", f"/v2/tasks/{quoted(task_key)}/cancellation")

    async def activate(self, request: ActivationRequest) -> list[ActivatedJob]:
        path = "/v2/jobs/leases"
        return (await self._post(path, request, ActivatedJobs, request.wait_ms)).jobs

    async def complete(self, jobs: Sequence[JobCompletion]) -> list[Answer]:
        return await self._report("/v2/jobs/completion", JobCompletions(list(jobs)))

    async def fail(self, jobs: Sequence[JobFailure]) -> list[Answer]:
        return await self._report("/v2/jobs/failure", JobFailures(list(jobs)))

    async def release(self, jobs: Sequence[HeldJob]) -> list[Answer]:
        return await self._report("/v2/jobs/release", HeldJobs(list(jobs)))

    async def extend(self, leases: Sequence[str], lease_ms: int) -> list[Answer]:
        return await self._report(
            "/v2/jobs/lease-extension", LeaseExtension(list(leases), lease_ms)
        )

    async def incidents(self, query: IncidentQuery) -> IncidentPage:
        return await self._post("/v2/incidents/listing", query, IncidentPage)

    async def resolve_incident(self, incident_key: str, retries: int) -> None:
        path = f"/v2/incidents/{quoted(incident_key)}/resolution"
        await self._send("POST", path, IncidentResolution(retries))

    async def discard_incident(self, incident_key: str) -> None:
        await self._send("POST", f"/v2/incidents/{quoted(incident_key)}/discard")

    async def put_schedule(self, schedule_id: str, schedule: NewSchedule) -> ScheduleView:
        content = await self._send("PUT", f"/v2/schedules/{quoted(schedule_id)}", schedule)
        return self._decoded(content, ScheduleView)

    async def delete_schedule(self, schedule_id: str) -> None:
        await self._send("DELETE", f"/v2/schedules/{quoted(schedule_id)}")

    async def schedules(self) -> list[ScheduleView]:
        return (await self._get("/v2/schedules", Schedules)).items

    async def topology(self) -> Topology:
        return await self._get("/v2/topology", Topology)

    async def health(self) -> Health:
        return await self._get("/v2/health", Health)

    async def metrics(self) -> bytes:
        return await self._send("GET", "/metrics")

    async def close(self) -> None:
        """Closes the connections; requests that wait for their answer fail as `Unavailable`."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _get(self, path: str, shape: type[_Shape]) -> _Shape:
        return self._decoded(await self._send("GET", path), shape)

    async def _post(
        self, path: str, body: msgspec.Struct, shape: type[_Shape], wait_ms: int = 0
    ) -> _Shape:
        return self._decoded(await self._send("POST", path, body, wait_ms), shape)

    async def _report(self, path: str, body: msgspec.Struct) -> list[Answer]:
        return (await self._post(path, body, Answers)).answers

    async def _send(
        self, method: str, path: str, body: msgspec.Struct | None = None, wait_ms: int = 0
    ) -> bytes:
        """The content of the answer to one request; a problem is raised as the error it tells."""
        content = None if body is None else _encode(body)
        async with self._long_polls if wait_ms > 0 else nullcontext():
            status, answer, when = await self._exchange(method, path, content, wait_ms)
        if status >= 400:
            raise self._error_of(status, answer, when)
        return answer

    async def _exchange(
        self, method: str, path: str, content: bytes | None, wait_ms: int
    ) -> tuple[int, bytes, str | None]:
        """Status and content of an answer, and what it says about when to come back."""
        seconds = ANSWER_S_MAX + wait_ms / 1_000
        try:
            async with self._open_session().request(
                method,
                URL(self.url + path, encoded=True),
                data=content,
                headers=self._headers if method == "GET" else self._acting_headers,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_S_MAX),
                allow_redirects=False,
            ) as response:
                return response.status, await response.read(), response.headers.get("Retry-After")
        except aiohttp.ConnectionTimeoutError as error:
            raise self._unavailable(f"did not connect within {CONNECT_S_MAX} s") from error
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"Expected an answer from {self.url} within {seconds:g} s, but none came",
                url=self.url,
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

    def _decoded(self, content: bytes, shape: type[_Shape]) -> _Shape:
        try:
            return _decoder(shape).decode(content)
        except msgspec.DecodeError as error:
            raise Internal(
                f"Expected {shape.__name__} from {self.url}, but found {_excerpt(content)}: {error}"
            ) from error

    def _error_of(self, status: int, content: bytes, when: str | None) -> HoldfastError:
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

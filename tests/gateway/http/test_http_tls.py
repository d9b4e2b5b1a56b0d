"""HTTPS: who is trusted, what is refused, and how a certificate is replaced under way."""

import asyncio
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.gateway.fake_api import FakeApi
from tests.gateway.http.authority import Authority

from holdfast.client.remote import RemoteApi
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.gateway.http import HttpServer, tls
from holdfast.gateway.http.connections import ConnectionLimits
from holdfast.gateway.http.tls import Certificate, certificate_of
from holdfast.gateway.tasks.shapes import NewTask

DAY = timedelta(days=1)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the server has to say about its certificate."""
    found: list[str] = []

    class Log:
        def __getattr__(self, level: str) -> Callable[..., None]:
            return lambda event, **_: found.append(f"{level}: {event}")

    monkeypatch.setattr(tls, "log", Log())
    return found


@asynccontextmanager
async def served(certificate: Certificate, **limits: int) -> AsyncIterator[HttpServer]:
    server = HttpServer(FakeApi(), tls=certificate, limits=ConnectionLimits(**limits))
    await server.start()
    try:
        yield server
    finally:
        await server.close()


async def version_at(url: str, **options: Any) -> str:
    client = RemoteApi(url, **options)
    try:
        return (await client.node.topology()).version
    finally:
        await client.close()


def presented_by(url: str, ca: Path, least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> str:
    """The name in the certificate that a server shows to a new connection."""
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = context.maximum_version = least
    port = int(url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as wire,
        context.wrap_socket(wire, server_hostname="127.0.0.1") as secure,
    ):
        found: Any = secure.getpeercert()
        return found["subject"][0][0][1]


def test_a_client_that_trusts_the_authority_is_served(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = authority.sign("node")

    async def story() -> None:
        async with served(Certificate(str(certificate), str(key))) as server:
            assert server.url.startswith("https://127.0.0.1:")
            assert await version_at(server.url, ca=authority.file) == "1.2.3"
            assert await version_at(server.url, verify=False) == "1.2.3"
            with pytest.raises(Unavailable, match="certificate is not trusted"):
                await version_at(server.url)
            monkeypatch.setenv("HOLDFAST_CA", str(authority.file))
            assert await version_at(server.url) == "1.2.3"
            with pytest.raises(Unavailable):
                await version_at(server.url.replace("https", "http"))
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                name = await asyncio.to_thread(presented_by, server.url, authority.file, version)
                assert name == "node"
            with pytest.raises(ssl.SSLError), pytest.warns(DeprecationWarning):
                old = ssl.TLSVersion.TLSv1_1
                await asyncio.to_thread(presented_by, server.url, authority.file, old)

    asyncio.run(story())


def test_the_key_may_be_in_the_file_of_the_certificate(authority: Authority) -> None:
    certificate, key = authority.sign("node")
    certificate.write_bytes(certificate.read_bytes() + key.read_bytes())

    async def story() -> None:
        async with served(Certificate(str(certificate))) as server:
            assert await version_at(server.url, ca=authority.file) == "1.2.3"

    asyncio.run(story())


def test_large_answers_and_bodies_pass(authority: Authority) -> None:
    api, numbers = FakeApi(), b"holdfast_lag_records 0\n" * 500_000

    async def metrics() -> bytes:
        return numbers

    api.node.metrics = metrics  # pyright: ignore[reportAttributeAccessIssue]
    payload = msgspec.Raw(b'"' + b"a" * 2_000_000 + b'"')

    async def story() -> None:
        server = HttpServer(api, tls=Certificate(*map(str, authority.sign("node"))))
        await server.start()
        client = RemoteApi(server.url, ca=authority.file)
        assert await client.node.metrics() == numbers
        assert await client.tasks.submit([NewTask("mail", payload)])
        await client.close()
        await server.close()

    asyncio.run(story())


def test_the_bounds_hold_behind_tls(authority: Authority) -> None:
    certificate, key = authority.sign("node")

    async def story() -> None:
        async with served(Certificate(str(certificate), str(key)), head_ms_max=200) as server:
            port = int(server.url.rpartition(":")[2])
            trust = ssl.create_default_context(cafile=authority.file)
            for sent, status in (
                (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000, b"431"),
                (b"GET / HTTP/1.1\r\nHost: loc", b"408"),
                (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"421"),
            ):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
                writer.write(sent)
                heard = await asyncio.wait_for(reader.read(), 20)
                assert heard.startswith(b"HTTP/1.1 " + status)
                writer.close()

    asyncio.run(story())


# --- replacing it -----------------------------------------------------------------------------


def test_a_new_certificate_is_shown_to_new_connections(
    authority: Authority, logged: list[str]
) -> None:
    first, second = authority.sign("first"), authority.sign("second")
    certificate = Certificate(*map(str, first))

    async def story() -> None:
        async with served(certificate) as server:
            old = RemoteApi(server.url, ca=authority.file)
            await old.node.topology()
            certificate.reload_if_changed()
            assert logged == [], "nothing changed"
            for new, place in zip(second, first, strict=True):
                shutil.copy(new, place)
            certificate.reload_if_changed()
            assert logged == ["info: certificate reloaded"]
            for _ in range(2):
                name = await asyncio.to_thread(presented_by, server.url, authority.file)
                assert name == "second"
            await old.node.topology()
            await old.close()

    asyncio.run(story())


@pytest.mark.parametrize("what", ["half", "nothing", "gone", "noise"])
def test_a_broken_certificate_is_logged_and_the_former_stays(
    authority: Authority, logged: list[str], what: str
) -> None:
    first, second = authority.sign("first"), authority.sign("second")
    certificate = Certificate(*map(str, first))
    if what == "half":
        shutil.copy(second[0], first[0])  # its key has not come yet
    elif what == "gone":
        first[0].unlink()
    else:
        first[0].write_bytes(b"" if what == "nothing" else b"\xff" * 1_000)

    async def story() -> None:
        async with served(certificate) as server:
            certificate.reload_if_changed()
            certificate.reload_if_changed()
            assert logged == ["error: certificate not reloaded, the former one is kept"]
            assert await asyncio.to_thread(presented_by, server.url, authority.file) == "first"
            for new, place in zip(second, first, strict=True):
                shutil.copy(new, place)
            certificate.reload_if_changed()
            assert logged[-1] == "info: certificate reloaded"
            assert await asyncio.to_thread(presented_by, server.url, authority.file) == "second"

    asyncio.run(story())


# --- what is refused --------------------------------------------------------------------------


def test_what_is_wrong_with_the_files_is_said(authority: Authority, tmp_path: Path) -> None:
    certificate, key = map(str, authority.sign("node"))
    _, other_key = map(str, authority.sign("other"))
    _, hidden_key = map(str, authority.sign("hidden", passphrase=b"secret"))
    noise = tmp_path / "noise.pem"
    noise.write_bytes(b"noise")
    for files, found in (
        ((str(tmp_path / "none.pem"), key), "TLS certificate .*none.pem: no such file"),
        ((certificate, str(tmp_path / "none.pem")), "TLS key .*none.pem: no such file"),
        ((str(tmp_path), key), "is a directory"),
        ((certificate, other_key), "other-key.pem belongs to another"),
        ((certificate, hidden_key), "without a passphrase"),
        ((str(noise), key), "a certificate .PEM. in .*noise.pem, but the file has none"),
        ((certificate, str(noise)), "a private key .PEM. in .*noise.pem, but the file has none"),
        ((certificate, ""), "a private key .PEM. in .*, but the file has none"),
    ):
        with pytest.raises(InvalidArgument, match=found):
            Certificate(*files)
    with pytest.raises(InvalidArgument, match="certificate beside the key"):
        certificate_of("", key)
    assert certificate_of("", "") is None


def test_a_certificate_at_the_wrong_time_is_a_warning(
    authority: Authority, logged: list[str]
) -> None:
    Certificate(*map(str, authority.sign("node")))
    assert logged == []
    Certificate(*map(str, authority.sign("old", begins=-2 * DAY, ends=-DAY)))
    Certificate(*map(str, authority.sign("young", begins=DAY, ends=2 * DAY)))
    assert logged == ["warning: certificate is expired", "warning: certificate is not valid yet"]


@pytest.mark.parametrize("content", [None, b"", b"noise"])
def test_an_authority_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "authority.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidArgument, match=r"authorities .* in .*authority\.pem"):
        RemoteApi("https://127.0.0.1:1", ca=file)


def test_a_handshake_that_never_comes_is_ended(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.gateway.http import server as module

    monkeypatch.setattr(module, "HANDSHAKE_S_MAX", 0.2)
    certificate, key = authority.sign("node")

    async def story() -> None:
        async with served(Certificate(str(certificate), str(key))) as server:
            port = int(server.url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\x16\x03\x01")
            assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()
            assert await version_at(server.url, ca=authority.file) == "1.2.3"

    asyncio.run(story())


# --- a node as a process ----------------------------------------------------------------------


def test_a_node_serves_https_and_takes_a_new_certificate(
    authority: Authority, tmp_path: Path
) -> None:
    first, second = authority.sign("first"), authority.sign("second")
    third = authority.sign("third")
    environment = {**os.environ, "HOLDFAST_CA": str(authority.file)}
    command = [sys.executable, "-m", "holdfast.cli"]
    node = subprocess.Popen(
        [
            *command, "start", str(tmp_path / "data"), "--port", "0", "--json",
            "--log-level", "info", "--tls-certificate", str(first[0]), "--tls-key", str(first[1]),
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert node.stdout is not None and node.stderr is not None
        url = json.loads(node.stdout.readline())["url"]
        assert url.startswith("https://127.0.0.1:")
        asked = subprocess.run(
            [*command, "tasks", "list", "--url", url], env=environment, capture_output=True
        )
        assert asked.returncode == 0, asked.stderr
        assert presented_by(url, authority.file) == "first"
        for new, place in zip(second, first, strict=True):
            shutil.copy(new, place)
        while "certificate reloaded" not in node.stderr.readline():  # seen by itself
            pass
        assert presented_by(url, authority.file) == "second"
        for new, place in zip(third, first, strict=True):
            stamp = place.stat()
            place.write_bytes(new.read_bytes())
            os.utime(place, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        node.send_signal(signal.SIGHUP)
        while presented_by(url, authority.file) != "third":
            node.stderr.readline()
    finally:
        node.terminate()
        assert node.wait(30) == 0


def test_a_node_with_the_wrong_key_does_not_start(authority: Authority, tmp_path: Path) -> None:
    (certificate, _), (_, key) = authority.sign("node"), authority.sign("other")
    options = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    command = [sys.executable, "-m", "holdfast.cli", "start", str(tmp_path / "data"), *options]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "belongs to another" in ended.stderr and "Traceback" not in ended.stderr
    assert not (tmp_path / "data").exists()

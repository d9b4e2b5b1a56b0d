"""etcd with users and with TLS: who is let in, and what is said to the others."""

import asyncio
import datetime
import ipaddress
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.peers.etcd import EtcdServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.etcd_server import etcd_server
from tests.sequence.coordination_contract import cut, live

from holdfast.errors import HoldfastError, Unavailable
from holdfast.sequence import etcd_client
from holdfast.sequence import etcd_messages as messages
from holdfast.sequence.etcd import EtcdCoordination
from holdfast.sequence.opening import open_coordination

pytestmark = pytest.mark.xdist_group("etcd")


def play(
    url: str, story: Callable[[EtcdCoordination], Awaitable[None]], **files: str
) -> HoldfastError | None:
    """Plays a story; the error that ended it."""

    async def played() -> HoldfastError | None:
        coordination = open_coordination(url, "n1", **files)
        try:
            await story(coordination)
        except HoldfastError as error:
            return error
        finally:
            await coordination.close()
        return None

    return asyncio.run(played())


async def reads(coordination: EtcdCoordination) -> None:
    await coordination.latest()


# --- users -------------------------------------------------------------------------------------


@pytest.fixture
def guarded(etcd: EtcdServer) -> EtcdServer:
    """root, and a user `holdfast` who may use its own keys, and one `nobody` who may use none."""
    etcd.ctl("user", "add", "root:r")
    etcd.ctl("user", "grant-role", "root", "root")
    etcd.ctl("role", "add", "holdfast")
    etcd.ctl(
        "role", "grant-permission", "holdfast", "--prefix=true", "readwrite", "/holdfast/main/"
    )
    for user in ("holdfast", "nobody"):
        etcd.ctl("user", "add", f"{user}:p@ss/{user}")
    etcd.ctl("user", "grant-role", "holdfast", "holdfast")
    etcd.ctl("auth", "enable")
    return etcd


def test_a_user_does_all_that_a_member_does(guarded: EtcdServer) -> None:
    async def story(a: EtcdCoordination) -> None:
        changes = a.changes()
        assert await anext(changes) == "registered"
        assert await a.announce(live("a")) == 1
        for number in (1, 2):
            assert await a.publish(cut(number))
            # A server that is started again knows no tokens any more.
            await asyncio.to_thread(guarded.kill)
            await asyncio.to_thread(guarded.run)
            async with asyncio.timeout(10):
                while await _latest(a) != cut(number):
                    pass
        assert await a.keys._keep_alive(a.keys._lease)
        revision = (await a.keys.read()).revision
        await a.keys.compact(revision)
        again = messages.new("CompactionRequest", revision=revision)
        with pytest.raises(Unavailable, match="has been compacted"):
            await a.keys._client.write(messages.COMPACT, again)

    async def _latest(a: EtcdCoordination) -> object:
        try:
            return await a.latest()
        except Unavailable:
            return None

    url = f"etcd://holdfast:p%40ss%2Fholdfast@{guarded.endpoint}"
    assert play(url, story) is None


def test_a_member_that_etcd_refuses_is_told_why(guarded: EtcdServer) -> None:
    wrong = play(f"etcd://holdfast:wrong@{guarded.endpoint}", reads)
    assert isinstance(wrong, Unavailable)
    assert "refused the user and password" in wrong.message
    stranger = play(guarded.url, reads)
    assert isinstance(stranger, Unavailable)
    assert "etcd://USER:PASSWORD@HOST:PORT" in stranger.message
    without_rights = play(f"etcd://nobody:p%40ss%2Fnobody@{guarded.endpoint}", reads)
    assert isinstance(without_rights, Unavailable)
    assert "grant it readwrite on /holdfast/" in without_rights.message
    other = play(f"etcd://holdfast:p%40ss%2Fholdfast@{guarded.endpoint}/other", reads)
    assert isinstance(other, Unavailable)
    assert "lacks a permission" in other.message


def test_credentials_that_etcd_does_not_ask_for_do_no_harm(etcd: EtcdServer) -> None:
    assert play(f"etcd://me:secret@{etcd.endpoint}", reads) is None


# --- TLS ---------------------------------------------------------------------------------------


class Pair(NamedTuple):
    certificate: Path
    key: Path


Authority = tuple[x509.Name, ec.EllipticCurvePrivateKey]


def _sign(folder: Path, name: str, authority: Authority | None) -> tuple[Pair, Authority]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signer = authority or (subject, key)
    now = datetime.datetime.now(datetime.UTC)
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(authority is None, None), critical=True)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .sign(signer, hashes.SHA256())
    )
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pair, (subject, key)


def test_tls_checks_the_server_and_the_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_client, "ETCD_CONNECT_MS_MAX", 300)
    monkeypatch.setattr(etcd_client, "ETCD_CALL_MS_MAX", 600)
    ca, authority = _sign(tmp_path, "ca", None)
    server, _ = _sign(tmp_path, "server", authority)
    member, _ = _sign(tmp_path, "member", authority)
    other_ca, _ = _sign(tmp_path, "other", None)
    options = [
        f"--cert-file={server.certificate}", f"--key-file={server.key}", "--client-cert-auth",
        f"--trusted-ca-file={ca.certificate}",
    ]  # fmt: skip
    own = {"certificate": str(member.certificate), "key": str(member.key)}

    async def story(a: EtcdCoordination) -> None:
        assert await a.publish(cut(1))
        assert await a.latest() == cut(1)

    with etcd_server(tls=options) as etcd:
        url = f"etcds://{etcd.endpoint}"
        assert play(url, story, ca=str(ca.certificate), **own) is None
        for wrong in (
            play(url, reads, ca=str(other_ca.certificate), **own),  # another authority's server
            play(url, reads, ca=str(ca.certificate)),  # a member without a certificate
            play(f"etcd://{etcd.endpoint}", reads),  # no TLS at all
        ):
            assert isinstance(wrong, Unavailable)

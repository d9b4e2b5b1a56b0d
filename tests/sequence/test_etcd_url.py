"""Where etcd is: what a URL says, and what is said about one that is wrong."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from holdfast.errors import InvalidArgument, Unavailable
from holdfast.sequence import opening
from holdfast.sequence.etcd_url import EtcdAddress, parse_etcd_url
from holdfast.sequence.opening import check_cluster_installed, etcd_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("etcd://10.0.0.5:2379", EtcdAddress(("10.0.0.5:2379",))),
        ("etcd://a,b:1,c:65535", EtcdAddress(("a:2379", "b:1", "c:65535"))),
        ("etcd://[::1]:2379,[fe80::2]", EtcdAddress(("[::1]:2379", "[fe80::2]:2379"))),
        ("etcds://etcd.example.org", EtcdAddress(("etcd.example.org:2379",), is_tls=True)),
        ("etcd://a/orders-2_b", EtcdAddress(("a:2379",), "orders-2_b")),
        ("etcd://a/", EtcdAddress(("a:2379",))),
        ("etcd://me:p%40ss%2Fw@a", EtcdAddress(("a:2379",), user="me", password="p@ss/w")),
        ("etcd://me:p@ss@a", EtcdAddress(("a:2379",), user="me", password="p@ss")),
    ],
)
def test_a_url_names_servers_cluster_and_credentials(url: str, address: EtcdAddress) -> None:
    assert parse_etcd_url(url) == address


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("", "nothing"),
        ("10.0.0.5:2379", "10.0.0.5:2379"),
        ("http://a:2379", "http://…"),
        ("etcd://", "the host ''"),
        ("etcd://a,,b", "the host ''"),
        ("etcd://:2379", "the host ':2379'"),
        ("etcd://a:port", "the port 'port' in a:port"),
        ("etcd://a:0", "the port '0'"),
        ("etcd://a:65536", "the port '65536'"),
        ("etcd://a:", "the port ''"),
        ("etcd://a:1:2", "the host 'a:1:2'"),
        ("etcd://::1", "the host '::1'"),
        ("etcd://a b", "the host 'a b'"),
        ("etcd://secret@a", "only one of a user and a password"),
        ("etcd://:secret@a", "only one of a user and a password"),
        ("etcd://a/b/c", "a cluster called 'b/c'"),
        ("etcd://a/..", "a cluster called '..'"),
        ("etcd://a?x=1", "a?x=1, which has settings behind a ?"),
    ],
)
def test_a_wrong_url_is_explained(url: str, found: str) -> None:
    with pytest.raises(InvalidArgument, match=r"Expected etcd as etcd://") as error:
        parse_etcd_url(url)
    assert f"but found {found}" in error.value.message
    assert "secret" not in error.value.message


def test_a_password_is_not_shown() -> None:
    address = parse_etcd_url("etcds://me:secret@a,b/c")
    assert str(address) == repr(address) == "etcds://a:2379,b:2379/c"


def test_files_for_tls_are_read_and_checked(tmp_path: Path) -> None:
    pem, other = tmp_path / "ca.pem", tmp_path / "other"
    pem.write_text("-----BEGIN CERTIFICATE-----")
    other.write_bytes(b"\x30\x82")
    assert etcd_address("etcds://a", ca=str(pem)).ca == pem.read_bytes()
    with pytest.raises(InvalidArgument, match=r"in PEM at .*/other, but found something else"):
        etcd_address("etcds://a", ca=str(other))
    with pytest.raises(InvalidArgument, match="No such file"):
        etcd_address("etcds://a", ca=str(tmp_path / "none"))
    with pytest.raises(InvalidArgument, match="only one of them"):
        etcd_address("etcds://a", certificate=str(pem))
    with pytest.raises(InvalidArgument, match="not encrypted"):
        etcd_address("etcd://a", ca=str(pem))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_cluster_installed()

    def find(name: str) -> ModuleSpec | None:
        return None if name == "grpc" else ModuleSpec(name, None)

    monkeypatch.setattr(opening, "find_spec", find)
    with pytest.raises(Unavailable, match=r"pip install 'holdfast\[cluster\]'"):
        check_cluster_installed()


def test_grpc_is_not_imported_before_a_cluster_is_used() -> None:
    code = (
        "import sys, holdfast.cli.main, holdfast.node, holdfast.sequence.opening;"
        "sys.exit(any(name in sys.modules for name in ('grpc', 'google.protobuf')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

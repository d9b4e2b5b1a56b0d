"""Coordination from the text that names it. grpc is imported when a cluster is used, not before."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import InvalidArgument, Unavailable
from holdfast.sequence.etcd_url import EtcdAddress, parse_etcd_url

if TYPE_CHECKING:
    from holdfast.sequence.etcd import EtcdCoordination

_NEEDED = ("grpc", "google.protobuf", "zstandard")


def open_coordination(
    url: str, nonce: str, *, ca: str = "", certificate: str = "", key: str = ""
) -> "EtcdCoordination":
    """What members agree on, in the etcd that a URL names; files for TLS are PEM.

    The nonce is that of this start of the member. Nothing is asked yet. Raises InvalidArgument if
    the URL or a file is wrong, and Unavailable where the extra is not installed. Needs a running
    event loop.
    """
    address = etcd_address(url, ca=ca, certificate=certificate, key=key)
    check_cluster_installed()
    from holdfast.sequence.etcd import EtcdCoordination

    return EtcdCoordination(address, nonce)


def etcd_address(url: str, *, ca: str = "", certificate: str = "", key: str = "") -> EtcdAddress:
    """What a URL and the files for TLS say."""
    address = parse_etcd_url(url)
    if not address.is_tls and (ca or certificate or key):
        raise InvalidArgument(
            "Expected etcds:// with files for TLS, but found etcd://, which is not encrypted"
        )
    if bool(certificate) != bool(key):
        raise InvalidArgument(
            "Expected cluster_certificate and cluster_key, but found only one of them"
        )
    return msgspec.structs.replace(
        address, ca=_pem(ca), certificate=_pem(certificate), key=_pem(key)
    )


def check_cluster_installed() -> None:
    """A cluster needs packages that are not installed by default: says so if one is missing."""
    for name in _NEEDED:
        if not _is_there(name):
            raise Unavailable(f"{name} is not installed: pip install 'holdfast[cluster]'")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False


def _pem(file: str) -> bytes:
    if not file:
        return b""
    try:
        text = Path(file).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"Expected a file in PEM at {file}, but {error.strerror}") from None
    if b"-----BEGIN " not in text:
        raise InvalidArgument(f"Expected a file in PEM at {file}, but found something else")
    return text

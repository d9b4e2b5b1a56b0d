"""Where etcd is and how it is reached, from the text that names it."""

from urllib.parse import unquote

import msgspec

from holdfast.errors import InvalidArgument

_FORM = "etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/CLUSTER], or etcds:// for TLS"
_PORT = 2379
_CLUSTER = "main"


class EtcdAddress(msgspec.Struct, frozen=True):
    """Servers of one etcd, and the cluster of holdfast that is kept there."""

    endpoints: tuple[str, ...]  # host:port
    cluster: str = _CLUSTER  # several clusters may share an etcd
    user: str = ""
    password: str = ""
    is_tls: bool = False
    ca: bytes = b""  # PEM: who signs the servers' certificates; empty: the usual authorities
    certificate: bytes = b""  # PEM: this member's own, where etcd wants one
    key: bytes = b""

    @property
    def prefix(self) -> str:
        """What all keys of the cluster begin with."""
        return f"/holdfast/{self.cluster}"

    def __str__(self) -> str:
        """Without the password."""
        scheme = "etcds" if self.is_tls else "etcd"
        return f"{scheme}://{','.join(self.endpoints)}/{self.cluster}"

    def __repr__(self) -> str:
        return str(self)


def parse_etcd_url(url: str) -> EtcdAddress:
    """What a URL names; InvalidArgument that says what is wrong with it, without the password."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("etcd", "etcds"):
        raise _invalid(f"{scheme}://…" if separator else url.rpartition("@")[2] or "nothing")
    credentials, _, place = rest.rpartition("@")
    hosts, _, cluster = place.partition("/")
    user, _, password = credentials.partition(":")
    if credentials and not (user and password):
        raise _invalid("only one of a user and a password before the @")
    if "?" in place or "#" in place:
        raise _invalid(f"{place}, which has settings behind a ? or a #")
    if cluster and not cluster.replace("-", "").replace("_", "").isalnum():
        raise _invalid(f"a cluster called {cluster!r}, which is not letters, digits, - and _")
    return EtcdAddress(
        tuple(_endpoint(each) for each in hosts.split(",")),
        cluster or _CLUSTER,
        unquote(user),
        unquote(password),
        scheme == "etcds",
    )


def _endpoint(text: str) -> str:
    """host:port, with an address of IPv6 in brackets."""
    host, separator, port = text.rpartition(":")
    if not separator or port.endswith("]"):
        host, port = text, str(_PORT)
    is_v6 = host.startswith("[") and host.endswith("]")
    if not host.strip("[]") or (":" in host and not is_v6) or " " in host:
        raise _invalid(f"the host {text!r}")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise _invalid(f"the port {port!r} in {text}")
    return f"{host}:{port}"


def _invalid(found: str) -> InvalidArgument:
    return InvalidArgument(f"Expected etcd as {_FORM}, but found {found}")

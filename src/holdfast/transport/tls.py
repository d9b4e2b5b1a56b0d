"""TLS 1.3 in which both sides prove the keys that are registered for them."""

import ssl
import tempfile
from pathlib import Path
from typing import Any

from holdfast.transport.greeting import Keys
from holdfast.transport.keys import MemberKey, issuer_of, key_of


class Tls:
    """One member's side of TLS. `keys` may grow and shrink: it is looked at in each handshake.

    A key that was taken out of `keys` may still pass the handshake; the greeting that follows
    refuses it.
    """

    def __init__(self, key: MemberKey, keys: Keys) -> None:
        self.keys = keys
        self._key = key
        self._trusted: set[bytes] = set()
        self._server = self._context(ssl.PROTOCOL_TLS_SERVER)
        self._client = self._context(ssl.PROTOCOL_TLS_CLIENT)
        self._server.sni_callback = self._on_hello
        self._server.num_tickets = 0  # every connection proves its key

    @property
    def server(self) -> ssl.SSLContext:
        self._trust()
        return self._server

    @property
    def client(self) -> ssl.SSLContext:
        self._trust()
        return self._client

    def _context(self, side: Any) -> ssl.SSLContext:
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # a member is known by its key
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        # Python takes keys from files only: this one is ours alone, and gone at once.
        with tempfile.NamedTemporaryFile(prefix="holdfast-", suffix=".pem") as file:
            file.write(self._key.pem() + self._key.certificate())
            file.flush()
            context.load_cert_chain(Path(file.name))
        return context

    def _on_hello(self, connection: Any, name: str | None, context: ssl.SSLContext) -> None:
        self._trust()

    def _trust(self) -> None:
        for public in set(self.keys.values()) - self._trusted:
            issuer = issuer_of(public)
            self._server.load_verify_locations(cadata=issuer)
            self._client.load_verify_locations(cadata=issuer)
            self._trusted.add(public)


def proved_key(connection: Any) -> bytes | None:
    """The key that the other side of a TLS connection has proved to hold."""
    certificate = connection.getpeercert(binary_form=True)
    return key_of(certificate) if certificate else None

"""TLS for the server: a certificate and its key in files, which may be replaced while it runs."""

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.clock import Clock, SystemClock
from holdfast.errors import InvalidArgument
from holdfast.logs import log

HANDSHAKE_S_MAX = 5.0
_MISMATCH = "KEY_VALUES_MISMATCH"

_Seen = tuple[tuple[int, int, int], ...]


class Certificate:
    """What the server proves to be itself with."""

    def __init__(self, certificate: str, key: str = "", clock: Clock | None = None) -> None:
        """The files are PEM. Without a file for the key it is in the certificate's."""
        self._certificate = Path(certificate)
        self._key = Path(key or certificate)
        self._clock = clock or SystemClock()
        self._seen = self._look()
        self._current = self._load()
        # Handshakes begin with the context that the server was given, and go on with the current.
        self.context = self._current
        self.context.sni_callback = self._on_hello

    def reload_if_changed(self) -> None:
        """Takes the files as they are now, if they are others. What is broken is not taken."""
        if self._look() != self._seen:
            self.reload()

    def reload(self) -> None:
        """Takes the files as they are now: for handshakes from now on. What is broken is not."""
        self._seen = self._look()
        try:
            self._current = self._load()
        except InvalidArgument as error:
            log.error("certificate not reloaded, the former one is kept", why=error.message)
        else:
            log.info("certificate reloaded", file=str(self._certificate))

    def _on_hello(self, connection: Any, name: str | None, context: ssl.SSLContext) -> None:
        if context is not self._current:
            connection.context = self._current

    def _look(self) -> _Seen:
        """What tells that a file was replaced; nothing for one that is not there just now."""
        found: list[tuple[int, int, int]] = []
        for path in (self._certificate, self._key):
            try:
                status = os.stat(path)  # noqa: PTH116 - follows links, which are how they are swapped
            except OSError:
                continue
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return tuple(found)

    def _load(self) -> ssl.SSLContext:
        for path, what in ((self._certificate, "certificate"), (self._key, "key")):
            try:
                path.read_bytes()
            except OSError as error:
                raise InvalidArgument(
                    f"Cannot read the TLS {what} {path}: {os.strerror(error.errno or 0).lower()}",
                    file=str(path),
                ) from error
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self._certificate, self._key, password=self._no_password)
        except ssl.SSLError as error:
            raise InvalidArgument(self._trouble(error)) from error
        self._check_time()
        return context

    def _trouble(self, error: ssl.SSLError) -> str:
        if error.reason == _MISMATCH:
            return (
                f"Expected the key of the certificate in {self._certificate}, but the key in"
                f" {self._key} belongs to another"
            )
        why = f" ({error.reason.lower().replace('_', ' ')})" if error.reason else ""
        for path, what in ((self._certificate, "CERTIFICATE"), (self._key, "PRIVATE KEY")):
            if f"{what}-----" not in path.read_bytes().decode("latin-1"):
                return f"Expected a {what.lower()} (PEM) in {path}, but the file has none"
        return (
            f"Expected a certificate in {self._certificate} and its key in {self._key}, both PEM,"
            f" but one of them is damaged{why}"
        )

    def _no_password(self) -> bytes:
        raise InvalidArgument(
            f"Expected a key without a passphrase in {self._key}, but it has one; write it without,"
            " readable by the node's user alone"
        )

    def _check_time(self) -> None:
        """Warns of a certificate at the wrong time; it is served, and clients decide about it."""
        from cryptography.x509 import load_pem_x509_certificates

        certificate = load_pem_x509_certificates(self._certificate.read_bytes())[0]
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        now = datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC)
        if not begin <= now <= end:
            log.warning(
                "certificate is expired" if now > end else "certificate is not valid yet",
                file=str(self._certificate), begins=begin.isoformat(), ends=end.isoformat(),
            )  # fmt: skip


def certificate_of(certificate: str, key: str) -> Certificate | None:
    """The certificate that the settings name; None if they name none."""
    if key and not certificate:
        raise InvalidArgument("There is no TLS certificate beside the key")
    return Certificate(certificate, key) if certificate else None

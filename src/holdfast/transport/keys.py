"""Ed25519 keys of members, and the certificates that TLS wants around them.

What is registered is a public key and nothing else. A member proves its key with a certificate that
the key itself has issued; the other side makes an issuer from the registered key. So no
certificate is ever sent around, renewed or revoked: a key is registered or it is not.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import (
    BasicConstraints,
    Certificate,
    CertificateBuilder,
    Name,
    NameAttribute,
    load_der_x509_certificate,
)
from cryptography.x509.oid import NameOID

from holdfast.errors import InvalidArgument

_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)  # the registration decides, not a date
_END = datetime(9999, 12, 31, tzinfo=UTC)


class MemberKey:
    """The private key of a member; `public` is what the others register."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @classmethod
    def make(cls) -> Self:
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def open(cls, path: Path) -> Self:
        """The key in a PEM file; a new one is made and kept there if there is no such file."""
        if not path.exists():
            key = cls.make()
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(key.pem())
                file.flush()
                os.fsync(descriptor)
            return key
        try:
            private = load_pem_private_key(path.read_bytes(), None)
        except (ValueError, TypeError) as error:
            raise InvalidArgument(
                f"Expected a member's private key in {path}, PEM and without a passphrase, but"
                f" it cannot be read: {error}", file=str(path),
            ) from error  # fmt: skip
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidArgument(f"Expected an Ed25519 key in {path}, but it is another kind")
        return cls(private)

    def pem(self) -> bytes:
        """The private key, as its file holds it."""
        return self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def certificate(self) -> bytes:
        """The certificate that goes with the key, in PEM."""
        subject = _name(f"holdfast member {self.public.hex()[:16]}")
        return _certificate(subject, self.public, self._private, ca=False).public_bytes(
            Encoding.PEM
        )


def issuer_of(public: bytes) -> bytes:
    """A registered key as the issuer of its certificate, in DER: what TLS is told to trust.

    It is signed by a key that is thrown away: nobody looks at the signature of what is trusted.
    """
    throwaway = Ed25519PrivateKey.generate()
    return _certificate(_issuer(public), public, throwaway, ca=True).public_bytes(Encoding.DER)


def key_of(certificate: bytes) -> bytes | None:
    """The key that a certificate in DER is about; None if it is not an Ed25519 key."""
    public = load_der_x509_certificate(certificate).public_key()
    if not isinstance(public, Ed25519PublicKey):
        return None
    return public.public_bytes(Encoding.Raw, PublicFormat.Raw)


def _name(text: str) -> Name:
    return Name([NameAttribute(NameOID.COMMON_NAME, text)])


def _issuer(public: bytes) -> Name:
    return _name(public.hex())


def _certificate(
    subject: Name, public: bytes, signer: Ed25519PrivateKey, *, ca: bool
) -> Certificate:
    return (
        CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_issuer(public))
        .public_key(Ed25519PublicKey.from_public_bytes(public))
        .serial_number(2 if ca else 1)
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(BasicConstraints(ca=ca, path_length=None), critical=True)
        .sign(signer, None)
    )

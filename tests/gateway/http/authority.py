"""A certificate authority for tests."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
_PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates for 127.0.0.1 and localhost, and writes them to a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / f"{name}.pem"
        now = datetime.now(UTC)
        certificate = (
            _builder(self._name, self._name, self._key, now - DAY, now + 10 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file.write_bytes(certificate.public_bytes(_PEM))

    def sign(
        self,
        name: str,
        *,
        begins: timedelta = -DAY,
        ends: timedelta = DAY,
        passphrase: bytes | None = None,
    ) -> tuple[Path, Path]:
        """The files of a new certificate and its key."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        names = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
        signed = (
            _builder(_name(name), self._name, key, now + begins, now + ends)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        certificate, key_file = self._folder / f"{name}-cert.pem", self._folder / f"{name}-key.pem"
        certificate.write_bytes(signed.public_bytes(_PEM))
        hidden = (
            serialization.BestAvailableEncryption(passphrase)
            if passphrase
            else serialization.NoEncryption()
        )
        key_file.write_bytes(key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, hidden))
        return certificate, key_file


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    begin: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )

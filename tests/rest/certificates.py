"""Certificates made for a test: an authority, and what it signs."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


class Authority:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        certificate = (
            builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(certificate.public_bytes(PEM))

    def sign(self, name: str, files: str | None = None, host: str = "") -> tuple[Path, Path]:
        """A certificate in the name given, for loopback or else for the `host`, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        loopback = x509.SubjectAlternativeName([x509.DNSName(host) if host else address])
        certificate = (
            builder(named(name), self._name, key.public_key())
            .add_extension(loopback, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        stem = files or name
        chain, private = self._folder / f"{stem}.crt", self._folder / f"{stem}.key"
        chain.write_bytes(certificate.public_bytes(PEM))
        private.write_bytes(
            key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return chain, private


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )

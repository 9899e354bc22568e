"""Certificates for a cluster of the tests' own: one authority that signs everything."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dovetail-tests")])
        own = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = directory / "ca.crt"
        self.certificate.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, name: str, groups: tuple[str, ...] = (), hosts: tuple[str, ...] = ()
    ) -> tuple[Path, Path]:
        """A certificate and its key: of a user with these groups, and of a server on loopback.

        `hosts` are further names and addresses of the server.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usages = x509.ExtendedKeyUsage(
            [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        )
        signed = (
            _builder(subject, self._name, key)
            .add_extension(_names(hosts), critical=False)
            .add_extension(usages, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        stem = name.replace(":", "-")
        certificate, secret = self.directory / f"{stem}.crt", self.directory / f"{stem}.key"
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return certificate, secret


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + 30 * DAY)
    )


def _names(hosts: tuple[str, ...]) -> x509.SubjectAlternativeName:
    found: list[x509.GeneralName] = []
    for each in ("localhost", "127.0.0.1", *hosts):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(each)))
        except ValueError:
            found.append(x509.DNSName(each))
    return x509.SubjectAlternativeName(found)

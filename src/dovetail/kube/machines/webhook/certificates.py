"""Certificates of the webhook: an authority and the leaf that it signs, as they are made and kept.

The leader's rotation makes them and keeps them in a Secret; every replica reads the leaf there. The
API server trusts the authorities in the webhook's configurations, and nobody else does.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dovetail.podfit.objects import ApiResource, KubeObject

AUTHORITIES, AUTHORITY_KEY = "ca.crt", "ca.key"
LEAF, LEAF_KEY = "tls.crt", "tls.key"
"""Keys of the Secret: those that cert-manager uses as well, but for the authority's own key."""
BACKDATED = timedelta(minutes=5)
"""Certificates are valid from a little before they were made: clocks differ."""
UNREADABLE = (KeyError, ValueError, TypeError, UnsupportedAlgorithm)


class Secret(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("", "v1", "secrets", "Secret")

    data: dict[str, bytes] = {}  # noqa: RUF012 - copied for each


class KeyedCertificate(msgspec.Struct, frozen=True):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class CertificateSet(msgspec.Struct, frozen=True):
    """What the Secret holds."""

    authorities: tuple[x509.Certificate, ...]
    """All that are to be trusted, the newest first."""
    key: ec.EllipticCurvePrivateKey
    """Of the newest authority. Those of older ones are needed no more."""
    leaf: KeyedCertificate | None

    @property
    def newest(self) -> KeyedCertificate:
        return KeyedCertificate(self.authorities[0], self.key)

    @property
    def bundle(self) -> bytes:
        return pem_bundle(self.authorities)


def new_authority(
    now: datetime, lasts: timedelta, *, name: str = "dovetail webhook"
) -> KeyedCertificate:
    key = ec.generate_private_key(ec.SECP256R1())
    # A name of its own: whoever verifies looks authorities up by their names first.
    subject = _name(f"{name} {now:%Y-%m-%dT%H:%M:%SZ}")
    built = (
        _builder(subject, subject, key, now, lasts)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return KeyedCertificate(built.sign(key, hashes.SHA256()), key)


def new_leaf(
    authority: KeyedCertificate,
    hosts: Sequence[str],
    now: datetime,
    lasts: timedelta,
    *,
    name: str = "dovetail webhook",
) -> KeyedCertificate:
    """For a server that is called by these names or addresses; without any, for a client."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    side = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    built = (
        _builder(_name(name), issuer.subject, key, now, lasts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([side]), critical=False)
        .add_extension(identifier, critical=False)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_general_name(each) for each in hosts])
        built = built.add_extension(names, critical=False)
    return KeyedCertificate(built.sign(authority.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lasts: timedelta,
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + lasts)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def hosts_of(leaf: x509.Certificate) -> frozenset[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(each.value) for each in names)


def made_at(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + BACKDATED


def is_signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


# -- as they are kept ----------------------------------------------------------------------------


def pem_bundle(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def read_bundle(pem: bytes) -> tuple[x509.Certificate, ...]:
    """None, if it cannot be read."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except UNREADABLE:
        return ()


def read_set(data: Mapping[str, bytes]) -> CertificateSet | None:
    """None if there is no authority in it that could sign; a leaf that is none is left out."""
    authority = _read_pair(data, AUTHORITIES, AUTHORITY_KEY)
    if authority is None:
        return None
    authorities = read_bundle(data[AUTHORITIES])
    return CertificateSet(authorities, authority.key, _read_pair(data, LEAF, LEAF_KEY))


def _read_pair(data: Mapping[str, bytes], chain: str, key_name: str) -> KeyedCertificate | None:
    """The first certificate of the chain, and the key that is its own."""
    try:
        first = x509.load_pem_x509_certificates(data[chain])[0]
        key = serialization.load_pem_private_key(data[key_name], None)
    except UNREADABLE:
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != first.public_key():
        return None
    return KeyedCertificate(first, key)


def written_set(found: CertificateSet) -> dict[str, bytes]:
    data = {AUTHORITIES: found.bundle, AUTHORITY_KEY: pem_key(found.key)}
    if found.leaf is not None:
        data[LEAF] = pem_bundle([found.leaf.certificate])
        data[LEAF_KEY] = pem_key(found.leaf.key)
    return data

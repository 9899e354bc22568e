"""Kubeconfig and service account: where the API server is and how to get in, read by `connect`.

A kubeconfig that somebody sent (`access_by_document`, for registered clusters) may only say what it
has in itself: no file of this machine is read for it, and no program run. lightkube reads the
configuration. What lightkube leaves out is looked up here: the name a server's
certificate is for, and what we cannot do and must not pass over in silence.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.kubeconfig import (
    DEFAULT_KUBECONFIG,
    SERVICE_ACCOUNT,
    KubeConfig,
    SingleConfig,
)
from lightkube.config.models import User, UserExec
from lightkube.core.exceptions import ConfigError

from dovetail.core.errors import DovetailError
from dovetail.kube.api.credentials import (
    EXEC_CREDENTIAL_VERSIONS,
    CredentialPlugin,
    Credentials,
    Issuer,
    basic,
    bearer,
    constant,
    from_token_file,
)
from dovetail.kube.api.http1 import ServerAddress
from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits

SERVER_NAME = "tls-server-name"
UNSUPPORTED = ("proxy-url", "as", "as-uid", "as-groups", "as-user-extra", "auth-provider")
NOT_IN_ITSELF = (
    *("certificate-authority", "client-certificate", "client-key", "tokenFile"),
    *("exec", "auth-provider"),
)
"""Files and programs: nothing that a kubeconfig from elsewhere may name."""
LARGEST_DOCUMENT_BYTES = 1 << 20
UNSUPPORTED_EXEC = {"provideClusterInfo": True, "interactiveMode": "Always"}

Raw = Mapping[str, Any]


class BadKubeconfig(DovetailError):
    """No way to the API server is given, or none that can be used."""


def access(
    kubeconfig: str | None, limits: ClientLimits = DEFAULT_LIMITS
) -> tuple[ServerAddress, Credentials]:
    """As `kubeconfig` says; without one, as the pod's service account, $KUBECONFIG or the user's
    own file say, the first that is there."""
    place = kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    in_pod = not kubeconfig and Path(SERVICE_ACCOUNT, "token").is_file()
    if in_pod:
        place = SERVICE_ACCOUNT
    try:
        if in_pod:
            return access_of(KubeConfig.from_service_account(), {}, limits)
        return from_kubeconfig(Path(place).expanduser(), limits)
    except (ConfigError, ValueError, OSError, yaml.YAMLError, msgspec.MsgspecError) as error:
        raise BadKubeconfig(f"{place}: {error}") from error
    except (AttributeError, KeyError, TypeError) as error:
        # lightkube takes the outermost shape of the file for granted.
        raise BadKubeconfig(f"{place}: no kubeconfig: {error!r}") from error


def access_by_document(
    document: bytes, limits: ClientLimits = DEFAULT_LIMITS
) -> tuple[ServerAddress, Credentials]:
    """As a kubeconfig says that was sent to us. What it says is not repeated in errors."""
    if len(document) > LARGEST_DOCUMENT_BYTES:
        raise BadKubeconfig(f"kubeconfig: more than {LARGEST_DOCUMENT_BYTES} bytes")
    try:
        written = yaml.safe_load(document)
        found = KubeConfig.from_dict(written)
        refuse_what_is_elsewhere(written)
        return access_of(found, written, limits, tls_in_memory)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise BadKubeconfig(f"kubeconfig: no YAML{where}") from None
    except ConfigError as error:
        raise BadKubeconfig(f"kubeconfig: {error}") from None
    except (ValueError, OSError, msgspec.MsgspecError) as error:
        raise BadKubeconfig(f"kubeconfig: {type(error).__name__} in what it says") from None
    except (AttributeError, KeyError, TypeError, RecursionError):
        raise BadKubeconfig("kubeconfig: it has not the form of one") from None


def refuse_what_is_elsewhere(written: Raw) -> None:
    for plural, kind in (("clusters", "cluster"), ("users", "user")):
        for one in written.get(plural) or ():
            for word, value in (one.get(kind) or {}).items():
                if word in NOT_IN_ITSELF:
                    raise ConfigError(f"{kind} {one.get('name')!r}: {word} is not allowed")
                if word.endswith("-data") and not is_base64(value):
                    raise ConfigError(f"{kind} {one.get('name')!r}: {word} is not in base 64")


def is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode("".join(text.split()), validate=True))
    except ValueError:
        return False


def from_kubeconfig(file: Path, limits: ClientLimits) -> tuple[ServerAddress, Credentials]:
    if not file.is_file():
        raise ConfigError("not found")
    written = yaml.safe_load(file.read_text())
    return access_of(KubeConfig.from_dict(written, fname=file), written, limits)


def tls_by_files(config: SingleConfig, user: User) -> ssl.SSLContext:
    return verify_cluster(config.cluster, user, config.abs_file)


def tls_in_memory(config: SingleConfig, user: User) -> ssl.SSLContext:
    """Of what the kubeconfig has in itself; only OpenSSL's own reader of keys needs files."""
    cluster = config.cluster
    authority = cluster.certificate_auth_data
    trusted = base64.b64decode(authority).decode("ascii") if authority else None
    context = ssl.create_default_context(cadata=trusted)
    if cluster.insecure and not trusted:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if user.client_cert_data and user.client_key_data:
        with NamedTemporaryFile() as file:
            for data in (user.client_cert_data, user.client_key_data):
                file.write(base64.b64decode(data) + b"\n")
            file.flush()
            # Without a password it would ask for one at the terminal.
            context.load_cert_chain(file.name, password="")
    return context


def access_of(
    found: KubeConfig,
    written: Raw,
    limits: ClientLimits,
    tls_of: Callable[[SingleConfig, User], ssl.SSLContext] = tls_by_files,
) -> tuple[ServerAddress, Credentials]:
    config = found.get()
    assert config is not None
    user = config.user or User()
    cluster = entry_of(written, "clusters", "cluster", config.context.cluster)
    refuse_unsupported(cluster)
    refuse_unsupported(entry_of(written, "users", "user", config.context.user))
    address = address_of(config, user, cluster.get(SERVER_NAME) or None, tls_of)
    return address, Credentials(issuer_of(config, user, limits), limits)


def entry_of(written: Raw, plural: str, kind: str, name: str | None) -> Raw:
    """One of the file's clusters or users, with everything that is said of it."""
    said: dict[str, Raw] = {one["name"]: one[kind] or {} for one in written.get(plural) or ()}
    return said.get(name or "", {})


def refuse_unsupported(said: Raw) -> None:
    """What would be done otherwise than it says."""
    for word in UNSUPPORTED:
        if said.get(word):
            raise ConfigError(f"{word} is not supported")
    for word, value in UNSUPPORTED_EXEC.items():
        if (said.get("exec") or {}).get(word) == value:
            raise ConfigError(f"exec with {word}: {value} is not supported")


def address_of(
    config: SingleConfig,
    user: User,
    server_name: str | None,
    tls_of: Callable[[SingleConfig, User], ssl.SSLContext],
) -> ServerAddress:
    url = urlsplit(config.cluster.server)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(f"server {config.cluster.server!r} is no URL with http or https")
    if url.scheme == "http":
        return ServerAddress(url.hostname, url.port or 80, url.path.rstrip("/"))
    tls = tls_of(config, user)
    return ServerAddress(url.hostname, url.port or 443, url.path.rstrip("/"), tls, server_name)


def issuer_of(config: SingleConfig, user: User, limits: ClientLimits) -> Issuer | None:
    """The first of the ways in that the user has."""
    if user.token_file:
        return from_token_file(Path(config.abs_file(user.token_file)), limits)
    if user.token:
        return constant(bearer(user.token.strip()))
    if user.exec:
        return credential_plugin(config, user.exec, limits).issue
    if user.username and user.password:
        return constant(basic(user.username, user.password))
    return None


def credential_plugin(
    config: SingleConfig, said: UserExec, limits: ClientLimits
) -> CredentialPlugin:
    if said.apiVersion not in EXEC_CREDENTIAL_VERSIONS:
        known = ", ".join(EXEC_CREDENTIAL_VERSIONS)
        raise ConfigError(f"exec of apiVersion {said.apiVersion}: one of {known} is expected")
    program = said.command
    if os.sep in program:
        program = os.fspath(config.abs_file(program))
    return CredentialPlugin(
        said.apiVersion,
        (program, *(said.args or ())),
        {each.name: each.value for each in said.env or ()},
        limits,
    )

"""Kubeconfig and service account: where the API server is and how to get in, read by `connect`.

lightkube reads the configuration. What lightkube leaves out is looked up here: the name a server's
certificate is for, and what we cannot do and must not pass over in silence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
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


def from_kubeconfig(file: Path, limits: ClientLimits) -> tuple[ServerAddress, Credentials]:
    if not file.is_file():
        raise ConfigError("not found")
    written = yaml.safe_load(file.read_text())
    return access_of(KubeConfig.from_dict(written, fname=file), written, limits)


def access_of(
    found: KubeConfig, written: Raw, limits: ClientLimits
) -> tuple[ServerAddress, Credentials]:
    config = found.get()
    assert config is not None
    user = config.user or User()
    cluster = entry_of(written, "clusters", "cluster", config.context.cluster)
    refuse_unsupported(cluster)
    refuse_unsupported(entry_of(written, "users", "user", config.context.user))
    address = address_of(config, user, cluster.get(SERVER_NAME) or None)
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


def address_of(config: SingleConfig, user: User, server_name: str | None) -> ServerAddress:
    url = urlsplit(config.cluster.server)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(f"server {config.cluster.server!r} is no URL with http or https")
    if url.scheme == "http":
        return ServerAddress(url.hostname, url.port or 80, url.path.rstrip("/"))
    tls = verify_cluster(config.cluster, user, config.abs_file)
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

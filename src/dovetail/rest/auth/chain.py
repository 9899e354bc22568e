"""Authenticator chain: the ways in that are open, made from their settings by `cli.run.worker`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.datastructures import Headers

from dovetail.config.values import BadSettings
from dovetail.rest.auth.identity import Authenticator, BadToken, CannotTell, Identity
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.auth.settings import (
    AuthSettings,
    KeystoneSettings,
    Way,
    is_protected,
    is_web_address,
)
from dovetail.rest.auth.tokens import StaticTokens


class AuthenticatorChain:
    """Asks one way in after the other; the first that knows the caller lets it in."""

    def __init__(self, ways: tuple[Authenticator, ...]) -> None:
        self._ways = ways
        self.challenges = tuple(dict.fromkeys(c for way in ways for c in way.challenges))

    async def identify(self, headers: Headers) -> Identity | None:
        """A way that cannot tell outweighs one that says no: the token may be meant for it."""
        trouble: BadToken | CannotTell | None = None
        for way in self._ways:
            try:
                identity = await way.identify(headers)
            except CannotTell as error:
                trouble = error
            except BadToken as error:
                trouble = trouble or error
            else:
                if identity is not None:
                    return identity
        if trouble is not None:
            raise trouble
        return None

    async def close(self) -> None:
        for way in self._ways:
            await way.close()


def authenticator_of(settings: AuthSettings) -> Authenticator:
    """Raises BadSettings, or BadTokenFile, if nobody could get in."""
    if not settings.ways:
        raise BadSettings("auth names no way in: tokens, oidc, keystone or noauth2")
    if "noauth2" in settings.ways and len(settings.ways) > 1:
        raise BadSettings("noauth2 believes every caller: it cannot be combined with others")
    try:
        ways = tuple(MAKERS[way](settings) for way in dict.fromkeys(settings.ways))
    except OSError as error:
        raise BadSettings(f"the certificates to trust cannot be used: {error}") from error
    return ways[0] if len(ways) == 1 else AuthenticatorChain(ways)


def no_auth(_settings: AuthSettings) -> Authenticator:
    return NoAuth()


def static_tokens(settings: AuthSettings) -> Authenticator:
    if settings.tokens is None:
        raise BadSettings("--auth tokens needs --tokens FILE (see `dovetail token`)")
    return StaticTokens(Path(settings.tokens))


def oidc(settings: AuthSettings) -> Authenticator:
    from dovetail.rest.auth.oidc import Oidc

    chosen = settings.oidc
    if chosen.issuer is None or not chosen.audience:
        raise BadSettings("--auth oidc needs --oidc-issuer URL and --oidc-audience NAME")
    for url in (chosen.issuer, chosen.jwks_url):
        if url is not None and not is_protected(url):
            raise BadSettings(f"keys from {url} could be forged on the way: use https")
    return Oidc(chosen)


def keystone(settings: AuthSettings) -> Authenticator:
    from dovetail.rest.auth.keystone import Keystone

    chosen = settings.keystone
    if chosen.url is None or chosen.credential_file is None:
        raise BadSettings(
            "--auth keystone needs --keystone-url URL and --keystone-credential-file FILE"
        )
    if not Path(chosen.credential_file).is_file():
        raise BadSettings(f"there is no file {chosen.credential_file}")
    refuse_listeners(chosen, chosen.url)
    return Keystone(chosen)


def refuse_listeners(settings: KeystoneSettings, url: str) -> None:
    """Every token of every caller goes to this address, and the password of ours."""
    if not is_web_address(url):
        raise BadSettings(f"--keystone-url {url}: no address such as https://keystone/v3")
    if not is_protected(url) and not settings.plain_http_beyond_loopback:
        raise BadSettings(
            f"tokens and password could be read on the way to {url}: use https, or add "
            "--keystone-plain-http-beyond-loopback if nobody else is on that network"
        )


MAKERS: dict[Way, Callable[[AuthSettings], Authenticator]] = {
    "tokens": static_tokens,
    "oidc": oidc,
    "keystone": keystone,
    "noauth2": no_auth,
}

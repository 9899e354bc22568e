"""Several ways in at once: the first that knows the caller lets it in."""

from __future__ import annotations

from starlette.datastructures import Headers

from dovetail.rest.auth.identity import Authenticator, BadToken, CannotTell, Identity


class Several:
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

"""Sealed text: what a browser keeps for us, and can neither read nor change.

AES-256-GCM with a key that all servers of a ledger share, a random nonce, and the purpose as
associated data, so that what was sealed for one purpose opens for no other. The time of sealing is
sealed with it: how old it may be is for those who open it to say. A key seals up to 2^32 texts
safely, which is as many logins.
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dovetail.aio.thread_results import result_of
from dovetail.ledger import Ledger
from dovetail.ledger.database import sealing_keys

KEY_NAME = "console"
NONCE_BYTES = 12
TIME_BYTES = 8
SEAL_BYTES = NONCE_BYTES + TIME_BYTES + 16
"""What a seal adds to its content, with the tag of the cipher, before it is written in letters."""


class Seal:
    """Of one ledger; used on the event loop only."""

    def __init__(self, ledger: Ledger, wall: Callable[[], float] = time.time) -> None:
        self._ledger, self._wall = ledger, wall
        self._cipher: AESGCM | None = None

    async def close_up(self, purpose: str, content: str) -> str:
        """The content sealed, in letters that cookies may have."""
        nonce = os.urandom(NONCE_BYTES)
        plain = int(self._wall()).to_bytes(TIME_BYTES, "big") + content.encode("utf-8")
        sealed = (await self._key()).encrypt(nonce, plain, purpose.encode())
        return base64.urlsafe_b64encode(nonce + sealed).decode()

    async def open_up(self, purpose: str, sealed: str, most_seconds: int) -> str | None:
        """The content; None if it was not sealed here, for something else, or too long ago."""
        try:
            raw = base64.b64decode(sealed.encode("ascii"), b"-_", validate=True)
            nonce, text = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
            plain = (await self._key()).decrypt(nonce, text, purpose.encode())
        except (binascii.Error, InvalidTag, ValueError):
            return None
        age = self._wall() - int.from_bytes(plain[:TIME_BYTES], "big")
        return plain[TIME_BYTES:].decode("utf-8") if age <= most_seconds else None

    async def _key(self) -> AESGCM:
        """Read once, and made if no server of this ledger made it before."""
        if self._cipher is None:
            read = self._ledger.read(lambda tx: sealing_keys.find(tx, KEY_NAME))
            key = await result_of(read)
            if key is None:
                made = self._ledger.write(lambda tx: sealing_keys.ensure(tx, KEY_NAME))
                key = await result_of(made)
            self._cipher = AESGCM(key)
        return self._cipher

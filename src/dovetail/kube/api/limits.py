"""How long the API client waits, how often it tries again, and how much it reads.

`connect` takes these limits and hands them to connections, session and credentials; tests pass
smaller ones.
"""

from __future__ import annotations

import msgspec


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    connect_seconds: float = 10.0
    idle_seconds: float = 50.0
    """Connections unused for longer are not used again: the server is about to close them."""
    answer_seconds: float = 30.0
    silence_seconds: float = 150.0
    """Watches hear a bookmark about once a minute; one that hears nothing for so long is dead."""
    retries: int = 10
    """Of a call that the server puts off with a 429."""
    longest_retry_seconds: float = 30.0
    """However long the server asks us to wait before that."""
    head_bytes: int = 1 << 20
    body_bytes: int = 1 << 30
    """More is no answer of an API server, and must not take the memory of the process."""
    line_bytes: int = 1 << 26
    """Of a watch: far more than the largest object that etcd takes."""
    token_file_seconds: float = 60.0
    """How long a token from a file is used before the file is read again."""
    plugin_seconds: float = 60.0
    """How long a credential plugin may run."""
    expiry_margin_seconds: float = 10.0
    """A credential that expires within this time is not used any more."""
    failure_seconds: float = 2.0
    """After a failure to get credentials, all who ask within this time are told of it: plugins can
    be slow to fail."""


DEFAULT_LIMITS = ClientLimits()

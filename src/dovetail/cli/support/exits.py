"""Exit codes of the commands, and the errors that carry them."""

from __future__ import annotations

import click

NO = 1
"""The answer is no: nothing fits, faults were found."""


class RequestRefused(click.ClickException):
    """The server would not do it, and says why."""

    exit_code = 3


class ServerUnreachable(click.ClickException):
    """No server, or one that failed."""

    exit_code = 4


class NoPermission(click.ClickException):
    """The caller is not known to the server, or may not do this."""

    exit_code = 5


class LocalFailure(click.ClickException):
    """Nothing is wrong with the command, but something it needs on this machine does not work."""

    exit_code = 6


TABLE = (
    (0, "done; the answer is yes"),
    (1, "the answer is no: nothing fits, faults were found; or it was interrupted"),
    (2, "the command was not understood"),
    (3, "the server refused (4xx)"),
    (4, "the server could not be reached, or failed (5xx)"),
    (5, "no permission (401, 403)"),
    (6, "something on this machine failed: a file, a port, a database"),
)

"""Client of a running agent: one gRPC call on its control socket; `state` and `explain` use it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any, TypeVar

import click

from dovetail.cli.support.exits import LocalFailure, NoPermission, RequestRefused, ServerUnreachable

Command = TypeVar("Command", bound=Callable[..., Any])

VARIABLE = "DOVETAIL_AGENT_CONTROL_SOCKET"
DEFAULT = "/run/dovetail-agent/control.sock"
SECONDS = 10.0

control_option = click.option(
    "--control-socket",
    "control",
    metavar="PATH",
    envvar=VARIABLE,
    default=DEFAULT,
    help=f"The agent's socket. [default: {DEFAULT}; env: {VARIABLE}]",
)


def ask(control: str, method: str, question: dict[str, Any] | None = None) -> Any:
    """The agent's answer. Failures are told in a line, with their exit code."""
    reach(control)
    import grpc
    import orjson

    # The path itself is no name of a host: some machines would look it up.
    options = (("grpc.default_authority", "localhost"),)
    with grpc.insecure_channel(f"unix:{control}", options) as channel:
        asking: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            f"/dovetail.agent.v1.Agent/{method}"
        )
        try:
            return orjson.loads(asking(orjson.dumps(question or {}), timeout=SECONDS))
        except grpc.RpcError as error:
            raise failure(control, error) from None
        except orjson.JSONDecodeError:
            raise ServerUnreachable(f"what answers at {control} is no agent") from None


def reach(control: str) -> None:
    """Whether somebody is there, asked in a way that tells why not."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(control)
        except PermissionError:
            raise NoPermission(f"{control}: only the user that runs the agent may ask it") from None
        except OSError as error:
            known = error.errno in (errno.ENOENT, errno.ECONNREFUSED)
            # Of a path that is too long there is no number, only words.
            why = "no agent serves there" if known else error.strerror or str(error)
            raise ServerUnreachable(
                f"{control}: {why}. Is `dovetail agent` running? "
                f"--control-socket or {VARIABLE} says where"
            ) from None


def failure(control: str, error: Any) -> click.ClickException:
    import grpc

    code, words = error.code(), error.details()
    if code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT):
        return RequestRefused(words)
    if code is grpc.StatusCode.INTERNAL:
        return LocalFailure(f"the agent at {control} failed: {words}")
    return ServerUnreachable(f"the agent at {control} does not answer: {words} ({code.name})")

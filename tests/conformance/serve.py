"""Serves Dovetail for one test file or test, from a copy of a ledger or from nothing.

Run by Dovetail's own interpreter, in one of two ways. Other runners of the suite start one server:
`.venv/bin/python -m tests.conformance.serve --port {port} {dir} {profile}`. Ours start a nursery,
`--nursery SOCKET`: it imports Dovetail once, and every line of options that it is sent becomes a
server by a fork, since importing takes longer than most test files.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import signal
import socket
from pathlib import Path

from dovetail.cli.main import main as dovetail
from tests.support import databases

PROFILES = {
    "default": ("--policy", "legacy"),
    "legacy-rbac": ("--policy", "legacy"),
    "secure-rbac": ("--policy", "secure"),
    "open-policy": ("--policy", "open"),
    "cors": ("--policy", "legacy", "--cors-origin", "http://valid.example.com"),
}
"""What a test file may expect of the server."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a copy of a ledger, or an empty one.")
    parser.add_argument("--nursery", metavar="SOCKET", type=Path)
    options, more = parser.parse_known_args()
    if options.nursery:
        raise_servers(options.nursery)
    else:
        serve(more)


def serve(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ledger", metavar="URL", help="what to copy; without it, nothing")
    parser.add_argument("folder", type=Path, help="where the ledger goes, if it is a file")
    parser.add_argument("profile", choices=PROFILES)
    parser.add_argument("--port", required=True)
    options = parser.parse_args(arguments)
    file = options.folder / "ledger.db"
    database = databases.copied(options.ledger, file) if options.ledger else f"sqlite:///{file}"
    place = ("--host", "127.0.0.1", "--port", options.port, "--database", database)
    dovetail(["serve", *place, "--auth", "noauth2", *PROFILES[options.profile]])


def raise_servers(path: Path) -> None:
    """Answers every line with the pid of the server it made of it."""
    # Whoever ends is to be gone at once: those who wait for that are no parents.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    importlib.import_module("dovetail.cli.run.serve")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        while True:
            asking, _ = listening.accept()
            with asking:
                log, *arguments = shlex.split(asking.recv(1 << 16).decode())
                child = os.fork()
                if not child:
                    become_server(listening, asking, log, arguments)
                asking.sendall(str(child).encode())


def become_server(
    listening: socket.socket, asking: socket.socket, log: str, arguments: list[str]
) -> None:
    listening.close()
    asking.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        serve(arguments)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()

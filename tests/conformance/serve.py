"""Serves Dovetail for one test file or test, from a copy of a ledger or from nothing.

Run by Dovetail's own interpreter. It copies and serves in one process: to start another one after
copying would take longer than the copy. Other runners of the suite start it as well:
`.venv/bin/python -m tests.conformance.serve --port {port} {dir} {profile}`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dovetail.cli.main import main as dovetail
from tests import databases

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
    parser.add_argument("--ledger", metavar="URL", help="what to copy; without it, nothing")
    parser.add_argument("folder", type=Path, help="where the ledger goes, if it is a file")
    parser.add_argument("profile", choices=PROFILES)
    parser.add_argument("--port", required=True)
    options = parser.parse_args()
    file = options.folder / "ledger.db"
    database = databases.copied(options.ledger, file) if options.ledger else f"sqlite:///{file}"
    place = ("--host", "127.0.0.1", "--port", options.port, "--database", database)
    dovetail(["serve", *place, "--auth", "noauth2", *PROFILES[options.profile]])


if __name__ == "__main__":
    main()

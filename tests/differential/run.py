"""The command: random worlds and questions, the reference's answers against Dovetail's.

    python -m tests.differential.run --cases 5000

Prints the seed first, every mismatch in as small a form as was found, and the tally last; the exit
code is 1 if there was a mismatch.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.differential import servers
from tests.differential.campaign import Campaign, Tally
from tests.differential.wire import Pair


def main() -> int:
    arguments = _arguments()
    print(f"seed {arguments.seed}", flush=True)
    tally = _compare(arguments)
    for mismatch in tally.mismatches:
        print(mismatch)
    print(tally)
    return 1 if tally.mismatches else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare Dovetail with the real Placement.")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--verbose", action="store_true", help="print the tally after each world")
    parser.add_argument("--a-url", help="a running Placement, empty")
    parser.add_argument("--b-url", help="a running Dovetail, empty")
    return parser.parse_args()


def _compare(arguments: argparse.Namespace) -> Tally:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        a_url = arguments.a_url or stack.enter_context(servers.reference(_made(folder / "a")))
        b_url = arguments.b_url or stack.enter_context(servers.dovetail(_made(folder / "b")))
        pair = stack.enter_context(Pair(a_url, b_url))
        say = print if arguments.verbose else _nothing
        return Campaign(pair, say).run(arguments.cases, arguments.seed)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _nothing(_: str) -> None:
    """What a quiet run says."""


if __name__ == "__main__":
    sys.exit(main())

"""The command: `python -m bench.agent [--calls N]`."""

import argparse
import signal
import sys

from ..report import progress, table
from . import overhead


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agent", description=__doc__)
    parser.add_argument("--calls", type=int, default=3000, help="calls each way")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    progress(f"{options.calls:,} calls to containerd, directly and through the proxy in turn")
    direct, proxied = overhead.measure(options.calls)
    print(overhead_table(direct, proxied), flush=True)


def overhead_table(direct: overhead.Times, proxied: overhead.Times) -> str:
    rows = [
        (f"p{share}", f"{there:.2f} ms", f"{through:.2f} ms", f"{through - there:+.2f} ms", ratio)
        for share in (50, 90, 99)
        for there, through in [(direct.percentile(share), proxied.percentile(share))]
        for ratio in [f"{through / there:.1f}x"]
    ]
    columns = ("Version", "direct", "proxy", "added", "ratio")
    return table("CRI: one unary call", columns, rows)


if __name__ == "__main__":
    main()

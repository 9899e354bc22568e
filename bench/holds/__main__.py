"""The command: `python -m bench.holds [--hosts 10000] [--only REGEX] [--over MS]`."""

import argparse

from .measure import measure, report


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.holds", description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--only", default="", help="requests that match this expression")
    parser.add_argument("--over", type=float, default=10.0, help="show holds of so many ms")
    options = parser.parse_args()
    print(report(measure(options.hosts, options.only), options.over))


if __name__ == "__main__":
    main()

"""The command: `python -m bench.intents [--parts pick,packing,...] [--clusters N] [--apps N]`."""

import argparse
from collections.abc import Sequence

from ..report import progress, table
from . import mirror, packing, pick

PARTS = ("pick", "packing", "mirror")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.intents", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--clusters", type=int, default=5000)
    parser.add_argument("--apps", type=int, default=20)
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if "pick" in parts:
        progress(f"picks: {options.clusters:,} clusters, {options.apps} apps")
        found = []
        for fleet in pick.stories(options.clusters, options.apps):
            pick.measure(fleet)
            found.append(fleet)
        print(pick_table(found), flush=True)
    if "packing" in parts:
        progress(f"packing: {options.clusters:,} clusters, {options.apps} apps")
        found_rows = list(packing.rows(options.clusters, options.apps))
        print(table(packing.HEADING, packing.COLUMNS, found_rows), flush=True)
    if "mirror" in parts:
        progress(f"mirror: {mirror.CLUSTERS} clusters of {mirror.NODES} nodes")
        print(
            table(mirror.HEADING, ("mirror", ""), list(mirror.rows(mirror.measure()))), flush=True
        )


def pick_table(found: Sequence[pick.Fleet]) -> str:
    first = found[0]
    heading = (
        f"{len(first.clusters):,} clusters, {len(first.apps)} apps: combined and picked, given the"
        f" answers; {pick.ROUNDS} rounds, answers in another order in each"
    )
    rows = [
        (
            each.name,
            f"{each.combined.percentile(50):.0f} ms",
            f"{each.picked.percentile(50):.0f} ms",
            f"{each.combined.percentile(50) + each.picked.percentile(50):.0f} ms",
            "proven" if each.is_proven else "not proven",
            f"{each.shown.percentile(50):.0f} ms",
            f"{each.document_bytes / 1e3:.1f} kB",
            min(each.digests)[:12] if len(each.digests) == 1 else "DIFFERENT",
        )
        for each in found
    ]
    columns = ("answers", "combine", "pick", "both", "best", "document", "size", "digest")
    return table(heading, columns, rows)


if __name__ == "__main__":
    main()

"""The command: `python -m bench.agent [--calls N] [--rounds N] [--profile FILE]`."""

import argparse
import signal
import sys
from collections.abc import Sequence

from ..report import progress, table
from . import admissions, injected, merging, overhead
from .times import Times

SHARES = (50, 90, 99)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agent", description=__doc__)
    parser.add_argument("--calls", type=int, default=3000, help="calls each way")
    parser.add_argument("--rounds", type=int, default=10, help="times that a node fills up")
    parser.add_argument("--profile", default="", help="where to leave what the daemon did")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    progress("hints merged")
    print(merging_table(merging.measure()), flush=True)
    pods = options.rounds * admissions.AT_A_TIME
    progress(f"{pods:,} pods, with the agent and without it, then as many again in bursts")
    found = admissions.measure(options.rounds, options.profile)
    print(admissions_table(found), flush=True)
    print(parts_table(found), flush=True)
    progress(f"{options.calls:,} calls to containerd, directly and through the proxy in turn")
    print(both_table("CRI: one unary call", "Version", *overhead.measure(options.calls)))
    progress(f"{options.calls:,} containers created with devices, directly and through the proxy")
    heading = "A container with devices, a runtime that answers at once"
    print(both_table(heading, "CreateContainer", *injected.measure(options.calls)))


def both_table(heading: str, call: str, direct: Times, proxied: Times) -> str:
    rows = [
        (f"p{share}", f"{there:.2f} ms", f"{through:.2f} ms", f"{through - there:+.2f} ms", ratio)
        for share in SHARES
        for there, through in [(direct.percentile(share), proxied.percentile(share))]
        for ratio in [f"{through / there:.1f}x"]
    ]
    return table(heading, (call, "direct", "proxy", "added", "ratio"), rows)


def admissions_table(found: admissions.Admissions) -> str:
    heading = "A pod let in: 80 CPUs, 3 plugins, a runtime that answers at once"
    burst = found.bursts.percentile(50)
    rate = admissions.AT_A_TIME / burst * 1e3
    return "\n".join(
        [
            both_table(heading, "RunPodSandbox", found.direct, found.proxied),
            f"{admissions.AT_A_TIME} at once: {burst:,.0f} ms until the last, {rate:,.0f} pods/s",
        ]
    )


def parts_table(found: admissions.Admissions) -> str:
    parts = {
        "hints (3 plugins at once)": found.part("GetTopologyHints"),
        "merge": found.part("merge"),
        "Allocate (3, one by one)": found.part("Allocate"),
        "checkpoint (2 writes)": found.part("checkpoint"),
        "pod's specification": found.part("source"),
        "rest": found.rest,
        "admission": found.part("admission"),
    }
    rows = [(name, *shown(times)) for name, times in parts.items()]
    columns = ("part", *(f"p{share}" for share in SHARES))
    writes = f"5 durable writes are in it, of {found.writes.percentile(50):.2f} ms each here"
    return "\n".join([table("Where the time goes", columns, rows), writes])


def merging_table(found: Sequence[merging.Merging]) -> str:
    rows = []
    for each in found:
        fast = each.fast.percentile(50)
        slow = each.literal.percentile(50) if each.literal else None
        rows.append(
            (
                each.policy.value,
                f"{each.nodes}",
                f"{len(merging.RESOURCES)} x {2**each.nodes - 1}",
                f"{fast:.2f} ms",
                "-" if slow is None else f"{slow:,.1f} ms",
                "-" if slow is None else f"{slow / fast:,.0f}x",
            )
        )
    columns = ("policy", "nodes", "hints", "merge p50", "every combination", "ratio")
    return table("Hints", columns, rows)


def shown(times: Times) -> tuple[str, ...]:
    return tuple(f"{times.percentile(share):.2f} ms" for share in SHARES)


if __name__ == "__main__":
    main()

"""The command: `python -m bench.classes [--nodes N] [--pods N] [--bound N]`."""

import argparse

from ..agent.times import Times
from ..report import progress, table
from . import accounting, binding, drivers

SHARES = (50, 90, 99)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.classes", description=__doc__)
    parser.add_argument("--nodes", type=int, default=accounting.NODES)
    parser.add_argument("--pods", type=int, default=accounting.PODS)
    parser.add_argument("--bound", type=int, default=binding.PODS, help="pods on the API server")
    options = parser.parse_args()
    progress(f"the book by itself: {options.nodes:,} nodes, {options.pods:,} pods")
    print(accounting_table(accounting.measure(options.nodes, options.pods)), flush=True)
    progress(f"pods on a real API server: {options.nodes:,} nodes, {options.bound:,} pods")
    print(binding_table(binding.measure(options.nodes, options.bound)), flush=True)
    progress(f"with devices of DRA drivers: {options.nodes:,} nodes, {options.bound:,} pods")
    print(drivers_table(drivers.measure(options.nodes, options.bound)), flush=True)


def accounting_table(found: accounting.Accounting) -> str:
    heading = (
        f"{found.nodes:,} nodes, {found.devices:,} devices, {found.classes} classes,"
        f" {found.pods:,} pods, {found.held:,} devices held in the end"
    )
    parts = {
        "status of all classes, from cold": found.cold,
        **{f"a pod comes or goes, {label}": times for label, times in found.event.items()},
        **{f"a pod placed, {label}": times for label, times in found.place.items()},
    }
    rows = [(name, *shown(times)) for name, times in parts.items()]
    return table(heading, ("what", *(f"p{share}" for share in SHARES)), rows)


def binding_table(found: binding.Bound) -> str:
    heading = f"pods bound per second: {found.nodes:,} nodes, {found.pods:,} pods a round"
    rounds = range(1, len(found.rates[binding.OURS]) + 1)
    rows = [(name, *(f"{rate:.0f}" for rate in rates)) for name, rates in found.rates.items()]
    ratios = zip(found.rates[binding.OURS], found.rates[binding.KUBE], strict=True)
    rows.append(("ratio", *(f"{ours / theirs:.2f}x" for ours, theirs in ratios)))
    return table(heading, ("scheduler", *(f"round {number}" for number in rounds)), rows)


def drivers_table(found: binding.Bound) -> str:
    heading = f"with devices of DRA drivers: {found.nodes:,} nodes, {found.pods:,} pods a round"
    ours = found.rates[binding.OURS]
    rows = [(name, *(f"{rate:.0f}" for rate in rates)) for name, rates in found.rates.items()]
    for name in drivers.KUBE:
        ratios = zip(ours, found.rates[name], strict=True)
        rows.append((f"ratio to {name}", *(f"{mine / theirs:.2f}x" for mine, theirs in ratios)))
    return table(heading, ("scheduler", *(f"round {at}" for at in range(1, len(ours) + 1))), rows)


def shown(times: Times) -> tuple[str, ...]:
    return tuple(f"{times.percentile(share):.2f} ms" for share in SHARES)


if __name__ == "__main__":
    main()

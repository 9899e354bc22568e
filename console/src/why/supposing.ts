// What is supposed of the fleet, as the address has it: drain=A,B release=UUID add=host*2
// grow=UUID:CLASS:8.
import type { MissingAmount } from "./explanation";
import type { Supposed } from "./questions";

export function supposedOf(params: URLSearchParams): Supposed {
  const list = (key: string) => (params.get(key) ?? "").split(",").filter(Boolean);
  const add = list("add").map((each) => {
    const [, like = each, times = "1"] = /^(.*)\*(\d+)$/.exec(each) ?? [];
    return { like, times: Math.min(100, Math.max(1, Number(times))) };
  });
  const grow = list("grow").map((each) => {
    const [provider_uuid = "", resource_class = "", amount] = each.split(":");
    return { provider_uuid, resource_class, amount: Math.max(1, Math.trunc(Number(amount)) || 1) };
  });
  return { drain: list("drain"), release: list("release"), add, grow };
}

export function supposedParams(
  of: Supposed,
): Record<keyof Supposed, string | undefined> {
  return {
    drain: of.drain.join() || undefined,
    release: of.release.join() || undefined,
    add: of.add.map((each) => `${each.like}*${each.times}`).join() || undefined,
    grow: of.grow.map(grownText).join() || undefined,
  };
}

/** With more; what is supposed already is not supposed twice. */
export function withMore(of: Supposed, added: MissingAmount[]): Supposed {
  const known = new Set(of.grow.map(grownText));
  return { ...of, grow: [...of.grow, ...added.filter((each) => !known.has(grownText(each)))] };
}

export function grownText(of: MissingAmount): string {
  return `${of.provider_uuid}:${of.resource_class}:${of.amount}`;
}

export function isNothing(of: Supposed): boolean {
  return of.drain.length + of.release.length + of.add.length + of.grow.length === 0;
}

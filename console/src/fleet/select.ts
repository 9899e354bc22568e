// Which hosts are shown, and what they amount to per group.
import { count } from "../ui/numbers";
import { DEAD, DRAINED, isFull, OK, type Fleet, type Grouping } from "../map/model";

export const STATES = ["all", "free", "full", "drained", "dead"] as const;
export type StateFilter = (typeof STATES)[number];

export interface Selection {
  text: string;
  state: StateFilter;
  class: string;
  /** Only this group of the grouping, by its index. */
  group?: number | undefined;
}

/** Hosts that are shown, in the order of the map. The text is looked for in the name. */
export function selected(fleet: Fleet, grouping: Grouping, by: Selection): Int32Array {
  const wanted = by.text.trim().toLowerCase();
  const of = fleet.groupOf[grouping];
  const found: number[] = [];
  for (let host = 0; host < fleet.size; host++) {
    if (by.group !== undefined && of[host] !== by.group) continue;
    if (by.state !== "all" && !isIn(fleet, host, by)) continue;
    if (wanted && !matches(fleet, host, wanted)) continue;
    found.push(host);
  }
  return Int32Array.from(found);
}

export function areSame(some: Int32Array, others: Int32Array): boolean {
  return some.length === others.length && some.every((host, at) => host === others[at]);
}

function matches(fleet: Fleet, host: number, wanted: string): boolean {
  return fleet.names[host]!.toLowerCase().includes(wanted) || fleet.uuids[host] === wanted;
}

function isIn(fleet: Fleet, host: number, by: Selection): boolean {
  const state = fleet.states[host];
  if (by.state === "drained") return state === DRAINED;
  if (by.state === "dead") return state === DEAD;
  return state === OK && isFull(fleet, by.class, host) === (by.state === "full");
}

export interface GroupTotal {
  group: number;
  name: string;
  hosts: number;
  full: number;
  drained: number;
  dead: number;
  capacity: number;
  used: number;
}

export const NO_GROUP = -1;

/** Per group what there is of a class, the largest groups in the order of their names. */
export function totals(
  fleet: Fleet,
  grouping: Grouping,
  hosts: Int32Array,
  name: string,
): GroupTotal[] {
  const of = fleet.groupOf[grouping];
  const capacity = fleet.capacity.get(name);
  const used = fleet.used.get(name);
  const found = new Map<number, GroupTotal>();
  for (const host of hosts) {
    const group = of[host]!;
    let total = found.get(group);
    if (!total) found.set(group, (total = empty(group, nameOf(fleet, grouping, group))));
    total.hosts++;
    const state = fleet.states[host];
    if (state === DRAINED) total.drained++;
    else if (state === DEAD) total.dead++;
    else if (isFull(fleet, name, host)) total.full++;
    total.capacity += capacity?.[host] ?? 0;
    total.used += used?.[host] ?? 0;
  }
  return [...found.values()].sort(byName);
}

export function sum(of: GroupTotal[]): GroupTotal {
  const all = empty(NO_GROUP, "");
  for (const each of of) {
    for (const key of ["hosts", "full", "drained", "dead", "capacity", "used"] as const) {
      all[key] += each[key];
    }
  }
  return all;
}

/** How many take nothing, and why: where cells are too small for marks, this says it. */
export function stateNotes(of: GroupTotal): string[] {
  return (["full", "drained", "dead"] as const)
    .filter((state) => of[state] > 0)
    .map((state) => `${count(of[state])} ${state}`);
}

function empty(group: number, name: string): GroupTotal {
  return { group, name, hosts: 0, full: 0, drained: 0, dead: 0, capacity: 0, used: 0 };
}

export function nameOf(fleet: Fleet, grouping: Grouping, group: number): string {
  return group === NO_GROUP ? `no ${grouping}` : (fleet.groups[grouping][group] ?? "");
}

// rack2 comes before rack10, and hosts without a group come last.
const COLLATOR = new Intl.Collator("en", { numeric: true });

function byName(one: GroupTotal, other: GroupTotal): number {
  if (one.group === NO_GROUP || other.group === NO_GROUP) return other.group - one.group;
  return COLLATOR.compare(one.name, other.name);
}

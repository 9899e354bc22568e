// The fleet in columns, as GET /dovetail/v1/map tells it: a number per host and class, not an
// object per host. What changes arrives as numbers for some hosts and is written into the columns.

export const OK = 0;
export const DRAINED = 1;
export const DEAD = 2;

export const GROUPINGS = ["rack", "aggregate", "cluster", "pool"] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface MapDocument {
  version: string;
  /** Of which hosts and units there are: the same as long as their order is. */
  layout: string;
  hosts: {
    uuid: string[];
    name: (string | null)[];
    state: number[];
    group: Partial<Record<Grouping, number[]>>;
  };
  groups: Partial<Record<Grouping, string[]>>;
  classes: string[];
  capacity: Record<string, number[]>;
  used: Record<string, number[]>;
  lanes: {
    host: number[];
    kind: number[];
    name: (string | null)[];
    class: number[];
    capacity: number[];
    used: number[];
  };
  kinds: string[];
  fragmentation: number[];
}

export interface MapChange {
  version: string;
  /** Versions that this leads on from. */
  from: string[];
  hosts: number[];
  used: Record<string, number[]>;
  fragmentation: number[];
  lanes: { at: number[]; used: number[] };
}

export interface Fleet {
  version: string;
  layout: string;
  size: number;
  uuids: string[];
  names: string[];
  /** Where each host stands in the order of names. */
  rank: Int32Array;
  states: Uint8Array;
  groupOf: Record<Grouping, Int32Array>;
  groups: Record<Grouping, string[]>;
  classes: string[];
  capacity: Map<string, Float64Array>;
  used: Map<string, Float64Array>;
  fragmentation: Float64Array;
  lanes: Lanes;
  byUuid: Map<string, number>;
}

export interface Lanes {
  names: (string | null)[];
  kinds: string[];
  kindOf: Uint16Array;
  classOf: Uint16Array;
  capacity: Float64Array;
  used: Float64Array;
  /** Lanes of host h are order[first[h]] to order[first[h + 1] - 1]. */
  first: Int32Array;
  order: Int32Array;
}

export function fleetOf(document: MapDocument): Fleet {
  const { hosts, groups } = document;
  const size = hosts.uuid.length;
  const none = new Int32Array(size).fill(-1);
  const names = hosts.name.map((name, at) => name ?? hosts.uuid[at] ?? "");
  const columns = (of: Record<string, number[]>) =>
    new Map(document.classes.map((name) => [name, new Float64Array(of[name] ?? [])]));
  const groupOf = {} as Record<Grouping, Int32Array>;
  const groupNames = {} as Record<Grouping, string[]>;
  for (const grouping of GROUPINGS) {
    const of = hosts.group[grouping];
    groupOf[grouping] = of ? new Int32Array(of) : none;
    groupNames[grouping] = groups[grouping] ?? [];
  }
  return {
    version: document.version,
    layout: document.layout,
    size,
    uuids: hosts.uuid,
    names,
    rank: rankOf(names),
    states: new Uint8Array(hosts.state),
    groupOf,
    groups: groupNames,
    classes: document.classes,
    capacity: columns(document.capacity),
    used: columns(document.used),
    fragmentation: new Float64Array(document.fragmentation),
    lanes: lanesOf(document, size),
    byUuid: new Map(hosts.uuid.map((uuid, at) => [uuid, at])),
  };
}

/** Host2 before host10: numbers are padded once, since a collator asked for each pair is slow. */
function rankOf(names: string[]): Int32Array {
  const keys = names.map((name) => name.replace(/\d+/g, (digits) => digits.padStart(10, "0")));
  const order = keys.map((_, host) => host);
  const isSorted = keys.every((key, at) => at === 0 || keys[at - 1]! <= key);
  if (!isSorted)
    order.sort((one, other) =>
      keys[one]! < keys[other]! ? -1 : keys[one]! > keys[other]! ? 1 : 0,
    );
  const rank = new Int32Array(names.length);
  order.forEach((host, at) => (rank[host] = at));
  return rank;
}

function lanesOf({ lanes, kinds }: MapDocument, size: number): Lanes {
  const first = new Int32Array(size + 1);
  for (const host of lanes.host) first[host + 1]!++;
  for (let host = 0; host < size; host++) first[host + 1]! += first[host]!;
  const next = first.slice();
  const order = new Int32Array(lanes.host.length);
  lanes.host.forEach((host, lane) => (order[next[host]!++] = lane));
  return {
    names: lanes.name,
    kinds,
    kindOf: new Uint16Array(lanes.kind),
    classOf: new Uint16Array(lanes.class),
    capacity: new Float64Array(lanes.capacity),
    used: new Float64Array(lanes.used),
    first,
    order,
  };
}

/** Write a change into the columns. Nothing is copied: whoever draws, draws anew. */
export function apply(fleet: Fleet, change: MapChange): void {
  fleet.version = change.version;
  for (const [name, values] of Object.entries(change.used)) {
    const column = fleet.used.get(name);
    if (column) change.hosts.forEach((host, at) => (column[host] = values[at]!));
  }
  change.fragmentation.forEach((of, at) => (fleet.fragmentation[change.hosts[at]!] = of));
  change.lanes.at.forEach((lane, at) => (fleet.lanes.used[lane] = change.lanes.used[at]!));
}

export function capacityOf(fleet: Fleet, name: string, host: number): number {
  return fleet.capacity.get(name)?.[host] ?? 0;
}

export function usedOf(fleet: Fleet, name: string, host: number): number {
  return fleet.used.get(name)?.[host] ?? 0;
}

/** Nothing left of the class that one looks at; a host without any of it is not full. */
export function isFull(fleet: Fleet, name: string, host: number): boolean {
  const capacity = capacityOf(fleet, name, host);
  return capacity > 0 && usedOf(fleet, name, host) >= capacity;
}

export interface Lane {
  name: string | null;
  kind: string;
  class: string;
  capacity: number;
  used: number;
}

export function lanesOfHost(fleet: Fleet, host: number): Lane[] {
  const { lanes } = fleet;
  const found: Lane[] = [];
  for (let at = lanes.first[host]!; at < lanes.first[host + 1]!; at++) {
    const lane = lanes.order[at]!;
    found.push({
      name: lanes.names[lane] ?? null,
      kind: lanes.kinds[lanes.kindOf[lane]!] ?? "",
      class: fleet.classes[lanes.classOf[lane]!] ?? "",
      capacity: lanes.capacity[lane]!,
      used: lanes.used[lane]!,
    });
  }
  return found;
}

/** Groupings that say something about this fleet. */
export function groupingsOf(fleet: Fleet): Grouping[] {
  return GROUPINGS.filter((each) => fleet.groups[each].length > 0);
}

export function stateWords(fleet: Fleet, host: number, name: string): string {
  const state = fleet.states[host];
  if (state === DEAD) return "dead";
  if (state === DRAINED) return "drained";
  return isFull(fleet, name, host) ? "full" : "";
}

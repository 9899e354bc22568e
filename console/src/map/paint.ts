// What each host looks like: a step of a palette, and a mark for what colour alone must not say.
import { DEAD, DRAINED, isFull, type Fleet } from "./model";
import { stepOf } from "./colours";

export type Palette = "used" | "fragmentation" | "holder" | "verdict";

export const NO_MARK = 0;
export const HATCHED = 1;
export const CROSSED = 2;
export const BARRED = 3;
export const TICKED = 4;
export const HALVED = 5;
export const DOTTED = 6;
export const LAST_MARK = DOTTED;

export const FITS = 0;
export const NOT_NOW = 1;
export const NOT_LOOKED_AT = 3;

export interface Paint {
  palette: Palette;
  /** Per host; -1 where there is nothing of what one looks at. */
  step: Int8Array;
  mark: Uint8Array;
  /** Per host a letter that goes with the colour, where colours stand for names. */
  letter?: string[];
}

function stateMark(fleet: Fleet, host: number, name: string): number {
  const state = fleet.states[host];
  if (state === DEAD) return CROSSED;
  if (state === DRAINED) return HATCHED;
  return isFull(fleet, name, host) ? BARRED : NO_MARK;
}

function marks(fleet: Fleet, name: string): Uint8Array {
  const found = new Uint8Array(fleet.size);
  for (let host = 0; host < fleet.size; host++) found[host] = stateMark(fleet, host, name);
  return found;
}

export function byUse(fleet: Fleet, name: string): Paint {
  const capacity = fleet.capacity.get(name);
  const used = fleet.used.get(name);
  const step = new Int8Array(fleet.size);
  for (let host = 0; host < fleet.size; host++) {
    const of = capacity?.[host] ?? 0;
    step[host] = of > 0 ? stepOf((used?.[host] ?? 0) / of) : -1;
  }
  return { palette: "used", step, mark: marks(fleet, name) };
}

export function byFragmentation(fleet: Fleet, name: string): Paint {
  const step = Int8Array.from(fleet.fragmentation, (of) => stepOf(of / 100));
  return { palette: "fragmentation", step, mark: marks(fleet, name) };
}

/** Hosts by who holds most of them; -1 where nobody does. */
export function byHolder(fleet: Fleet, name: string, holderOf: Int8Array): Paint {
  const letter = Array.from(holderOf, (of) => (of < 0 ? "" : letterOf(of)));
  return { palette: "holder", step: holderOf, mark: marks(fleet, name), letter };
}

export function letterOf(holder: number): string {
  return String.fromCharCode(65 + holder);
}

/** Verdicts of a request, one per host in the order of the map. */
export function byVerdict(fleet: Fleet, verdicts: ArrayLike<number>): Paint {
  const step = new Int8Array(fleet.size).fill(NOT_LOOKED_AT);
  const mark = new Uint8Array(fleet.size).fill(DOTTED);
  for (let host = 0; host < Math.min(fleet.size, verdicts.length); host++) {
    const verdict = verdicts[host]!;
    step[host] = verdict;
    if (fleet.states[host] === DEAD) mark[host] = CROSSED;
    else if (verdict === FITS) mark[host] = TICKED;
    else if (verdict === NOT_NOW) mark[host] = HALVED;
    else if (verdict !== NOT_LOOKED_AT) mark[host] = NO_MARK;
  }
  return { palette: "verdict", step, mark };
}

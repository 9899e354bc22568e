// Which project holds most of a host, for colouring by holder: asked for again as the fleet changes.
import { signal } from "@preact/signals";
import { get, wordsOf } from "../app/api";
import type { Fleet } from "../map/model";

/** As many have a colour of their own; the others share the last. */
const NAMED = 7;
/** Everything on the map may have changed hands: it is asked for as a whole, so not too often. */
const PAUSE = 5_000;
const PAUSE_OF_OTHERS = 1_000;

/** As GET /dovetail/v1/map/holders tells it, in the order of the map. */
export interface HoldersDocument {
  layout: string;
  projects: string[];
  /** Per host the project with the most consumers there, or -1. */
  project: number[];
}

export interface HoldersOfHosts {
  /** Names for the legend; the last may stand for all others. */
  names: string[];
  /** Per host the place in `names`, or -1. */
  holderOf: Int8Array;
}

export const heldBy = signal<HoldersDocument | undefined>(undefined);
export const holdersProblem = signal<string | undefined>(undefined);

let timer: ReturnType<typeof setTimeout> | undefined;
let due = 0;
let asked = 0;
let isAsking = false;
let isOld = false;

/** Have holders asked for: now, or when the last answer is a while old; sooner if it is of another
 * fleet than this. */
export function askHolders(fleet: Fleet | undefined): void {
  isOld = true;
  if (isAsking) return;
  const isOther = heldBy.peek()?.layout !== fleet?.layout;
  const at = Math.max(Date.now(), asked + (isOther ? PAUSE_OF_OTHERS : PAUSE));
  if (timer !== undefined && due <= at) return;
  clearTimeout(timer);
  due = at;
  timer = setTimeout(() => void ask(fleet), at - Date.now());
}

async function ask(fleet: Fleet | undefined): Promise<void> {
  timer = undefined;
  asked = Date.now();
  isAsking = true;
  isOld = false;
  try {
    heldBy.value = await get<HoldersDocument>("/dovetail/v1/map/holders");
    holdersProblem.value = undefined;
  } catch (error) {
    holdersProblem.value = wordsOf(error);
  }
  isAsking = false;
  if (isOld) askHolders(fleet);
}

/** Nothing if they are those of another fleet than this. */
export function holdersOf(fleet: Fleet, held: HoldersDocument): HoldersOfHosts | undefined {
  if (held.layout !== fleet.layout) return undefined;
  const hosts = new Array<number>(held.projects.length).fill(0);
  for (const project of held.project) if (project >= 0) hosts[project]!++;
  const order = hosts.map((_, project) => project).filter((project) => hosts[project]! > 0);
  order.sort((one, other) => hosts[other]! - hosts[one]!);
  const named = order.slice(0, NAMED).map((project) => held.projects[project]!);
  const names = order.length > NAMED ? [...named, "others"] : named;
  const placeOf = new Int8Array(held.projects.length);
  order.forEach((project, place) => (placeOf[project] = Math.min(place, names.length - 1)));
  return {
    names,
    holderOf: Int8Array.from(held.project, (project) => (project < 0 ? -1 : placeOf[project]!)),
  };
}

// Which project holds most of a host, for colouring by holder.
import { computed, signal } from "@preact/signals";
import { get, wordsOf } from "../app/api";
import type { Holder, HoldersPage } from "../ledger/holder";
import type { Fleet } from "../map/model";

/** As many have a colour of their own; the others share the last. */
const NAMED = 7;
const PAGE = 1000;
const MOST_PAGES = 20;

export interface HoldersOfHosts {
  /** Names for the legend; the last may stand for all others. */
  names: string[];
  /** Per host the place in `names`, or -1. */
  holderOf: Int8Array;
}

const loaded = signal<Holder[] | undefined>(undefined);
export const holdersProblem = signal<string | undefined>(undefined);

export async function loadHolders(): Promise<void> {
  const found: Holder[] = [];
  let after: string | number | null | undefined;
  try {
    for (let page = 0; page < MOST_PAGES; page++) {
      const more = after ? `&after=${encodeURIComponent(String(after))}` : "";
      const answer = await get<HoldersPage>(`/dovetail/v1/consumers?limit=${PAGE}${more}`);
      found.push(...answer.consumers);
      after = answer.next;
      if (!after) break;
    }
    holdersProblem.value = after ? `Coloured by the first ${found.length} holders.` : undefined;
    loaded.value = found;
  } catch (error) {
    holdersProblem.value = wordsOf(error);
  }
}

export const heldBy = computed(() => loaded.value);

/** Of each host the project with the most consumers there. */
export function holdersOf(fleet: Fleet, held: Holder[]): HoldersOfHosts {
  const counts = new Map<number, Map<string, number>>();
  const everywhere = new Map<string, number>();
  for (const each of held) {
    const project = each.project;
    const hosts = new Set(each.holds.map((of) => fleet.byUuid.get(of.host_uuid) ?? -1));
    hosts.delete(-1);
    for (const host of hosts) {
      const here = counts.get(host) ?? new Map<string, number>();
      counts.set(host, here.set(project, (here.get(project) ?? 0) + 1));
    }
    everywhere.set(project, (everywhere.get(project) ?? 0) + hosts.size);
  }
  const names = [...everywhere].sort((one, other) => other[1] - one[1]).map(([name]) => name);
  const shown = names.length > NAMED ? [...names.slice(0, NAMED), "others"] : names;
  const holderOf = new Int8Array(fleet.size).fill(-1);
  for (const [host, here] of counts) {
    const [most] = [...here].sort((one, other) => other[1] - one[1])[0]!;
    holderOf[host] = Math.min(names.indexOf(most), shown.length - 1);
  }
  return { names: shown, holderOf };
}

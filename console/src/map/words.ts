// Hosts and their parts in words.
import { isolated } from "../ui/bidi";
import { isFull, type Fleet } from "./model";

/** One line about a host, for whoever cannot see the map. */
export function hostWords(fleet: Fleet, host: number, name: string): string {
  const capacity = fleet.capacity.get(name)?.[host] ?? 0;
  const used = fleet.used.get(name)?.[host] ?? 0;
  const state =
    ["", "drained", "dead"][fleet.states[host]!] || (isFull(fleet, name, host) ? "full" : "");
  const free = capacity > 0 ? `${capacity - used} of ${capacity} ${name} free` : `no ${name}`;
  return [isolated(fleet.names[host]!), state, free].filter(Boolean).join(", ");
}

/** The part of a provider's name that is not its host's. */
export function shortLane(name: string, host: string): string {
  return name.startsWith(host) && name.length > host.length
    ? name.slice(host.length).replace(/^[\s_./:-]+/, "")
    : name;
}

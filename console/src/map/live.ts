// The fleet as everybody on the page sees it, kept true while somebody looks: by a stream of changes,
// closed while the page is hidden; where streams do not get through, by asking every few seconds.
import { batch, computed, signal } from "@preact/signals";
import { answer, isAbort, wordsOf } from "../app/api";
import { may } from "../app/me";
import { FleetKeeper } from "./following/keeper";
import type { Fleet, MapDocument } from "./model";
import { listen } from "./following/sharing";
import type { Connection } from "./following/stream";

const MAP = "/dovetail/v1/map";
const POLL_MILLISECONDS = 5_000;

export const fleet = signal<Fleet | undefined>(undefined);
/** Grows with every change of the columns, which signals cannot see. */
export const revision = signal(0);
export const problem = signal<string | undefined>(undefined);

const connection = signal<Connection | "paused">("connecting");
const isBehind = signal(false);
export type Following = Connection | "paused" | "behind";
export const following = computed<Following>(() =>
  connection.value === "live" && isBehind.value ? "behind" : connection.value,
);

let watchers = 0;
let hangUp: (() => void) | undefined;
let polls: number | undefined;

const keeper = new FleetKeeper({
  ask: async (version) => {
    // The tag of a version, as it is and compressed.
    const seen = `"${version}", "${version}-gzip"`;
    const headers: Record<string, string> = version === undefined ? {} : { "if-none-match": seen };
    const reply = await answer(MAP, { headers, cache: "no-store" });
    problem.value = undefined;
    return reply.status === 304 ? undefined : ((await reply.json()) as MapDocument);
  },
  show: (now) =>
    batch(() => {
      fleet.value = now;
      revision.value++;
    }),
  setBehind: (is) => (isBehind.value = is),
  fail: (error) => {
    if (!isAbort(error)) problem.value = wordsOf(error);
  },
});

/** Follow the fleet until the returned function is called; views share one stream. Who may not see
 * the map does not ask for it. */
export function follow(): (() => void) | undefined {
  if (!may("map")) return undefined;
  watchers++;
  if (watchers === 1) {
    document.addEventListener("visibilitychange", onVisibility);
    onVisibility();
  }
  return () => {
    watchers--;
    if (watchers > 0) return;
    document.removeEventListener("visibilitychange", onVisibility);
    pause();
  };
}

/** Ask for the map as it is now. */
export function refresh(): Promise<void> {
  return keeper.refresh();
}

function onVisibility(): void {
  if (document.hidden) pause();
  else void resume();
}

function pause(): void {
  hangUp?.();
  hangUp = undefined;
  clearInterval(polls);
  polls = undefined;
  keeper.stop();
  connection.value = "paused";
}

async function resume(): Promise<void> {
  connection.value = "connecting";
  keeper.start();
  // What is known may be old: the stream begins with the version there is.
  if (!fleet.peek()) await refresh();
  if (watchers === 0 || document.hidden || hangUp) return;
  hangUp = listen({ connection: setConnection, event: (event) => keeper.take(event) });
}

function setConnection(now: Connection): void {
  connection.value = now;
  if (now === "polling") {
    polls ??= window.setInterval(() => void refresh(), POLL_MILLISECONDS);
  } else {
    clearInterval(polls);
    polls = undefined;
  }
}

// Keeps the fleet true while somebody looks: one stream of changes, closed while the page is
// hidden; where streams do not get through, the map is asked for every few seconds.
import { batch, signal } from "@preact/signals";
import { answer, isAbort, wordsOf } from "../app/api";
import { may } from "../app/me";
import { apply, fleetOf, type Fleet, type MapChange, type MapDocument } from "./model";

const MAP = "/dovetail/v1/map";
const EVENTS = `/console/api${MAP}/events`;
const POLL_MILLISECONDS = 5_000;
const FAILURES_UNTIL_POLLING = 2;

export const fleet = signal<Fleet | undefined>(undefined);
/** Grows with every change of the columns, which signals cannot see. */
export const revision = signal(0);
export const problem = signal<string | undefined>(undefined);
export type Following = "loading" | "live" | "polling" | "paused";
export const following = signal<Following>("loading");

let etag: string | null = null;
let source: EventSource | undefined;
let timer: number | undefined;
let failures = 0;
let watchers = 0;
let fetching: Promise<void> | undefined;

/** Follow the fleet until the returned function is called; views share one stream. Who may not see
 * the map does not ask for it. */
export function follow(): (() => void) | undefined {
  if (!may("map")) return undefined;
  watchers++;
  if (watchers === 1) {
    document.addEventListener("visibilitychange", onVisibility);
    void resume();
  }
  return () => {
    watchers--;
    if (watchers > 0) return;
    document.removeEventListener("visibilitychange", onVisibility);
    pause();
  };
}

function onVisibility(): void {
  if (document.hidden) {
    pause();
  } else {
    // Whatever was in the way of the stream may be gone.
    failures = 0;
    void resume();
  }
}

function pause(): void {
  source?.close();
  source = undefined;
  clearTimeout(timer);
  timer = undefined;
  if (following.peek() !== "loading") following.value = "paused";
}

async function resume(): Promise<void> {
  // What is known may be old: the stream begins with the version there is.
  if (!fleet.peek()) await refresh();
  if (isWatched()) listen();
}

function isWatched(): boolean {
  return watchers > 0 && !document.hidden;
}

/** Ask for the whole map, unless it is the one that is known. One at a time. */
export function refresh(): Promise<void> {
  fetching ??= fetchMap().finally(() => (fetching = undefined));
  return fetching;
}

async function fetchMap(): Promise<void> {
  try {
    const headers: Record<string, string> = etag && fleet.peek() ? { "if-none-match": etag } : {};
    const reply = await answer(MAP, { headers, cache: "no-store" });
    if (reply.status !== 304) {
      const document = (await reply.json()) as MapDocument;
      etag = reply.headers.get("etag");
      batch(() => {
        fleet.value = fleetOf(document);
        revision.value++;
      });
    }
    problem.value = undefined;
  } catch (error) {
    if (!isAbort(error)) problem.value = wordsOf(error);
  }
}

function listen(): void {
  if (source || timer !== undefined) return;
  if (failures >= FAILURES_UNTIL_POLLING) {
    poll();
    return;
  }
  const stream = new EventSource(EVENTS);
  source = stream;
  stream.addEventListener("hello", (event) => {
    failures = 0;
    following.value = "live";
    // Changed between the map and the stream.
    if (versionIn(event) !== fleet.peek()?.version) void refresh();
  });
  stream.addEventListener("change", (event) => take(JSON.parse(event.data) as MapChange));
  stream.addEventListener("reload", () => void refresh());
  stream.addEventListener("error", () => {
    stream.close();
    if (source === stream) source = undefined;
    failures++;
    if (isWatched()) later(1_000 * failures, resume);
  });
}

function later(milliseconds: number, what: () => Promise<void>): void {
  timer = window.setTimeout(() => {
    timer = undefined;
    void what();
  }, milliseconds);
}

function poll(): void {
  following.value = "polling";
  later(POLL_MILLISECONDS, async () => {
    await refresh();
    if (isWatched()) poll();
  });
}

function take(change: MapChange): void {
  const known = fleet.peek();
  if (!known) return;
  etag = null;
  apply(known, change);
  revision.value++;
}

function versionIn(event: MessageEvent<string>): string | undefined {
  return (JSON.parse(event.data) as { version?: string }).version;
}

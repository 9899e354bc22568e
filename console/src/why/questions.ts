// What the why view asks the server: explanations, verdicts per host, what-if, claims and moves.
import { get, send } from "../app/api";
import type { ConsumerMove, Explanation, MissingAmount } from "./explanation";

const DOOR = "/dovetail/v1";

export interface Asked {
  query: string;
  host?: string | undefined;
  moves?: boolean;
}

export function explain({ query, host, moves }: Asked, signal: AbortSignal): Promise<Explanation> {
  const more = (host ? `&host=${encodeURIComponent(host)}` : "") + (moves ? "&moves=1" : "");
  return get(`${DOOR}/explain?${query}${more}`, { signal });
}

export interface HostVerdicts {
  version: string;
  /** Of the map in whose order they are. */
  layout: string;
  verdict: number[];
  /** False: time was over before every host was looked at. */
  complete: boolean;
}

export function hostVerdicts(query: string, signal: AbortSignal): Promise<HostVerdicts> {
  return get(`${DOOR}/explain/hosts?${query}`, { signal });
}

export interface Supposed {
  drain: string[];
  release: string[];
  add: { like: string; times: number }[];
  grow: MissingAmount[];
}

export interface WhatIf {
  before: { hosts: number };
  after: { hosts: number };
  explanation: Explanation;
}

export async function whatIf(
  query: string,
  supposed: Supposed,
  signal: AbortSignal,
): Promise<WhatIf> {
  const trees = await Promise.all(
    supposed.add.map((each) => copies(each.like, each.times, signal)),
  );
  const { drain, release } = supposed;
  const grow = supposed.grow.map(({ provider_uuid, resource_class, amount }) => ({
    provider: provider_uuid,
    resource_class,
    amount,
  }));
  const body = { query, drain, release, grow, add: trees.flat() };
  return (await send<WhatIf>("POST", `${DOOR}/whatif`, body, { signal }))!;
}

interface Tree {
  name?: string | null;
  children?: Tree[];
  [key: string]: unknown;
}

/** Trees like that of a host, empty, with names of their own. */
async function copies(like: string, times: number, signal: AbortSignal): Promise<Tree[]> {
  const path = `/console/api${DOOR}/fleet?tree=${encodeURIComponent(like)}`;
  const reply = await fetch(path, { signal, headers: { "x-dovetail-console": "1" } });
  if (!reply.ok) throw new Error(`There is no host ${like} to copy.`);
  const lines = (await reply.text())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Tree);
  const tree = lines.find((line) => !("consumer" in line));
  if (!tree) throw new Error(`There is no host ${like} to copy.`);
  return Array.from({ length: times }, (_, index) => renamed(tree, `-like-${index + 1}`));
}

function renamed(tree: Tree, suffix: string): Tree {
  const { uuid: _, ...rest } = tree;
  return {
    ...rest,
    name: `${tree.name ?? "host"}${suffix}`,
    ...(tree.children ? { children: tree.children.map((each) => renamed(each, suffix)) } : {}),
  };
}

export interface Claimed {
  consumer: string;
  allocations: Record<string, { name: string | null; resources: Record<string, number> }>;
  decision: number | null;
}

export interface Claim {
  query: string;
  project_id?: string;
  consumer_type?: string;
}

export async function claim(wanted: Claim): Promise<Claimed> {
  // Whatever becomes of the answer, the same click claims once.
  const headers = { "idempotency-key": crypto.randomUUID() };
  return (await send<Claimed>("POST", `${DOOR}/claims`, wanted, { headers }))!;
}

export async function release(consumer: string): Promise<void> {
  await send("DELETE", `/allocations/${consumer}`);
}

interface Held {
  consumer_generation: number | null;
  project_id: string;
  user_id: string;
  consumer_type?: string;
}

/** Write where consumers are after they moved: all of them or none, so that swaps work, too. */
export async function move(moves: ConsumerMove[]): Promise<void> {
  const entries = await Promise.all(
    moves.map(async (each) => {
      const held = await get<Held>(`/allocations/${each.consumer}`);
      const { consumer_generation, project_id, user_id, consumer_type } = held;
      const allocations = Object.fromEntries(
        Object.entries(each.allocations).map(([provider, resources]) => [provider, { resources }]),
      );
      const owner = { project_id, user_id, consumer_type: consumer_type ?? "unknown" };
      return [each.consumer, { allocations, consumer_generation, ...owner }] as const;
    }),
  );
  await send("POST", "/allocations", Object.fromEntries(entries));
}

// Plans and explanations of deployment intent groups, as EMCO's door tells them.
import { get } from "../app/api";
import { may, me } from "../app/me";

export interface GroupName {
  project: string;
  app: string;
  version: string;
  group: string;
}

export interface ListedGroup extends GroupName {
  /** Null: it was never approved. */
  state: string | null;
  revision: number | null;
}

export interface Refusal {
  app?: string;
  apps?: string[];
  cluster?: string;
  controller?: string;
  words?: string;
  more?: number;
}

export interface Placement {
  app: string;
  cluster: string;
  score: number;
  options: { consumer: string; requirement: string; weight: number; granted: boolean }[];
  workloads: { kind: string; name: string; nodes: Record<string, number>; qosClass: string }[];
  diff?: string;
}

export interface Plan {
  feasible: boolean;
  fleet: {
    clusters: number;
    oldestSeconds: number;
    notReady: { cluster: string; state: string; why: string }[];
  };
  candidates: { candidates: Record<string, AppCandidates>[]; more: number };
  refused: Refusal[];
  pick?: {
    score: number;
    isProven: boolean;
    apps: Record<string, { cluster: string; score: number }[]>;
  };
  placements?: Placement[];
  why?: string;
}

export interface AppCandidates {
  count: number;
  allow?: string[];
  deny?: string[];
}

export function pathOf(of: GroupName): string {
  const [project, app, version, group] = [of.project, of.app, of.version, of.group].map(
    encodeURIComponent,
  );
  return `/v2/projects/${project}/composite-apps/${app}/${version}/deployment-intent-groups/${group}`;
}

/** Groups of all projects for who may see them, else those of the caller's own. */
export async function listGroups(signal: AbortSignal): Promise<ListedGroup[]> {
  const project = me.peek()?.project;
  const own =
    may("intents_of_all") || !project ? "" : `?project_id=${encodeURIComponent(project)}`;
  return (await get<{ groups: ListedGroup[] }>(`/dovetail/v1/intents${own}`, { signal })).groups;
}

/** Clusters that something is said about, of candidates, refusals and the pick. */
export function clustersIn(plan: Plan): string[] {
  const found = new Set<string>();
  for (const candidate of plan.candidates.candidates) {
    for (const of of Object.values(candidate))
      for (const each of [...(of.allow ?? []), ...(of.deny ?? [])]) found.add(each);
  }
  for (const each of plan.refused) if (each.cluster) found.add(each.cluster);
  for (const of of Object.values(plan.pick?.apps ?? {}))
    for (const each of of) found.add(each.cluster);
  return [...found].sort();
}

/** Why an app does not go to a cluster; nothing if nobody minds. */
export function reasons(plan: Plan, app: string, cluster: string): Refusal[] {
  return plan.refused.filter(
    (each) => each.cluster === cluster && (each.app === app || each.apps?.includes(app)),
  );
}

export function appsIn(plan: Plan): string[] {
  const found = new Set<string>(Object.keys(plan.pick?.apps ?? {}));
  for (const each of plan.candidates.candidates)
    for (const app of Object.keys(each)) found.add(app);
  for (const each of plan.refused)
    for (const app of each.apps ?? (each.app ? [each.app] : [])) found.add(app);
  return [...found];
}

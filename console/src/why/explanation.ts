// Explanations as the server gives them (docs/explain.md has what each part means).

export type Verdict = "fits" | "not_now" | "never";

export interface Place {
  name: string | null;
  uuid: string;
}

export interface Stage {
  reason: string;
  group: string | null;
  constraint: string;
  left: number;
  words: string;
}

export interface Finding {
  reason: string;
  group: string | null;
  constraint: string;
  met: boolean;
  ever: boolean;
  provider: string | null;
  provider_uuid: string | null;
  words: string;
  wanted?: number;
  free?: number;
  capacity?: number;
  short?: number;
}

export interface PlaceFindings extends Place {
  fits: boolean;
  findings: Finding[];
}

export interface Relaxation {
  hosts: number;
  query: string;
  words: string;
  vanishing: string[];
  smallest: boolean;
}

export interface ConsumerMove {
  consumer: string;
  resources: Record<string, number>;
  from: Place;
  to: Place | null;
  allocations: Record<string, Record<string, number>>;
  after: string[];
}

export interface MovePlan {
  host: Place;
  moves: ConsumerMove[];
  swap: boolean;
  smallest: boolean;
  words: string;
}

/** So much more of a class at a provider. */
export interface MissingAmount {
  provider?: string | null;
  provider_uuid: string;
  resource_class: string;
  amount: number;
}

export interface Explanation {
  verdict: Verdict;
  summary: string;
  of: string;
  total: number;
  fitting: number;
  funnel: Stage[];
  nearest: PlaceFindings[];
  relaxations: Relaxation[];
  more_relaxations?: number;
  emptied: Place[];
  additions: { host: Place; added: MissingAmount[]; words: string }[];
  moves?: MovePlan[];
  cut_short: boolean;
}

export const VERDICTS: Record<Verdict, string> = {
  fits: "It fits",
  not_now: "Not now",
  never: "Never",
};

/** What sentences of an explanation may have in them that people named: places, and words of the request. */
export function namesIn(of: Explanation): (string | null | undefined)[] {
  return [
    ...of.funnel.map((each) => each.constraint),
    ...of.nearest.flatMap((each) => [each.name, ...each.findings.map((one) => one.provider)]),
    ...of.additions.flatMap((each) => [each.host.name, ...each.added.map((one) => one.provider)]),
    ...of.relaxations.flatMap((each) => each.vanishing),
  ];
}

export function findingWord(finding: Finding): "ok" | "short" | "never" {
  return finding.met ? "ok" : finding.ever ? "short" : "never";
}

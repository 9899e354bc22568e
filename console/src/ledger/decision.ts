// Decisions as GET /dovetail/v1/decisions tells them.

export interface Candidate {
  position: number;
  allocations: Record<string, { name: string | null; resources: Record<string, number> }>;
  scores?: Record<string, unknown>;
}

export interface Decision {
  id: number;
  at: string;
  consumer: string;
  query: string;
  outcome: string;
  candidates: number;
  chosen: Candidate | null;
  passed_over: Candidate[];
  words?: string;
}

/** Names of the places that a decision chose among. */
export function placesOf({ chosen, passed_over }: Decision): (string | null)[] {
  return [...(chosen ? [chosen] : []), ...passed_over].flatMap((each) =>
    Object.values(each.allocations).map((held) => held.name),
  );
}

/** Parts of a score that are numbers, by name; parts of parts are named after both. */
export function scoreParts(scores: Record<string, unknown>, prefix = ""): [string, number][] {
  return Object.entries(scores).flatMap(([name, value]) => {
    if (typeof value === "number") return [[prefix + name, value] as [string, number]];
    if (typeof value === "object" && value !== null) {
      return scoreParts(value as Record<string, unknown>, `${prefix}${name} `);
    }
    return [];
  });
}

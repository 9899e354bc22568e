// Where bars of a timeline stand: times as shares of the span that is shown.

export interface Hold {
  from: string | null;
  until: string | null;
}

export interface Span {
  start: number;
  end: number;
}

const HOUR = 3_600_000;

/** From the first hold to the last end, with now in it and some room at both ends. */
export function spanOf(holds: Hold[], now: number): Span {
  const times = holds.flatMap((each) => [each.from, each.until]).filter((each) => each !== null);
  const all = [now, ...times.map((each) => Date.parse(each)).filter((each) => !Number.isNaN(each))];
  const start = all.reduce((one, other) => Math.min(one, other));
  const end = all.reduce((one, other) => Math.max(one, other));
  const room = Math.max(HOUR / 2, (end - start) * 0.05);
  return { start: start - room, end: end + room };
}

export function shareOf(time: number, span: Span): number {
  return Math.min(1, Math.max(0, (time - span.start) / (span.end - span.start)));
}

/** A stretch of a hold that goes on: held so far, lent from now on, or held though its end is over. */
export interface Stretch {
  kind: "held" | "lent" | "overdue";
  from: number;
  to: number;
}

/** What has no end goes on to the edge. */
export function stretchesOf(hold: Hold, now: number, span: Span): Stretch[] {
  const from = hold.from === null ? 0 : shareOf(Date.parse(hold.from), span);
  if (hold.until === null) return [{ kind: "held", from, to: 1 }];
  const [here, end] = [shareOf(now, span), shareOf(Date.parse(hold.until), span)];
  const first: Stretch = { kind: "held", from, to: Math.max(Math.min(here, end), from) };
  return [
    first,
    end > here
      ? { kind: "lent", from: first.to, to: Math.max(end, first.to) }
      : { kind: "overdue", from: first.to, to: Math.max(here, first.to) },
  ];
}

const STEPS = [
  HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  24 * HOUR,
  7 * 24 * HOUR,
  30 * 24 * HOUR,
  365 * 24 * HOUR,
];

/** Round times for the axis, eight at the most. */
export function ticksOf(span: Span, most = 8): number[] {
  const step = STEPS.find((each) => (span.end - span.start) / each <= most) ?? STEPS.at(-1)!;
  const found: number[] = [];
  for (let time = Math.ceil(span.start / step) * step; time < span.end; time += step)
    found.push(time);
  return found.slice(0, 4 * most);
}

// Times: ages where that is what matters, else the moment. Moments are in UTC and say so everywhere, as those of the
// server's logs and answers are: two people who look at the same page read the same.
import { ago } from "./numbers";

/** A time as an age; the title has the moment. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="quiet">–</span>;
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at)}
    </time>
  );
}

/** A time as the moment it is; the title has its age, or how long it is until then. */
export function Moment({ at }: { at: string }) {
  return (
    <time dateTime={at} title={ago(at)}>
      {moment(at)}
    </time>
  );
}

/** 2026-11-18 14:23 UTC. */
export function moment(at: string | number): string {
  const known = unlabelled(at);
  return known === undefined ? String(at) : `${known} UTC`;
}

/** From when until when, with the zone once. */
export function stretch(from: string | null, until: string | null): string {
  if (from === null) return `always – ${until === null ? "open" : moment(until)}`;
  if (until === null) return `${moment(from)} – open`;
  return `${unlabelled(from) ?? from} – ${moment(until)}`;
}

/** 14:23 UTC. */
export function clock(at: number): string {
  return moment(at).slice(11);
}

function unlabelled(at: string | number): string | undefined {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return undefined;
  return time.toISOString().slice(0, 16).replace("T", " ");
}

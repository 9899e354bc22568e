import { ago } from "./numbers";

/** A time as an age; the title has the moment. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="quiet">–</span>;
  return (
    <time dateTime={at} title={at}>
      {ago(at)}
    </time>
  );
}

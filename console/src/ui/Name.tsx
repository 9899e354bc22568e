// Names come from everywhere: they are text, keep their writing direction to themselves, and are
// clipped where there is no room for all of them, or wrapped in sentences.

export function Name({
  of,
  empty = "(no name)",
  wraps = false,
}: {
  of: string | null | undefined;
  empty?: string;
  wraps?: boolean;
}) {
  if (!of) return <span class="quiet">{empty}</span>;
  return (
    <bdi class={wraps ? "name wraps" : "name"} title={of}>
      {of}
    </bdi>
  );
}

/** A UUID in short, where the whole of it helps nobody; the title has it. */
export function ShortId({ of }: { of: string }) {
  return (
    <bdi class="id" title={of}>
      {/^[0-9a-f]{8}-/.test(of) ? of.slice(0, 8) : of}
    </bdi>
  );
}

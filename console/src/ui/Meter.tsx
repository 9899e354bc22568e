// How much of something is used: a bar, with the numbers beside it as text.
import { count } from "./numbers";

interface MeterProps {
  used: number;
  capacity: number;
  /** A stroke between the numbers, where there is little room. */
  isShort?: boolean;
}

export function Meter({ used, capacity, isShort = false }: MeterProps) {
  const full = capacity > 0 && used >= capacity;
  return (
    <span class="metered">
      <svg
        class={full ? "meter full" : "meter"}
        viewBox="0 0 100 8"
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <rect class="track" width="100" height="8" />
        <rect
          class="fill"
          width={capacity > 0 ? Math.min(100, (100 * used) / capacity) : 0}
          height="8"
        />
      </svg>
      <span class="figures">
        {count(used)}
        {isShort ? "/" : " of "}
        {count(capacity)}
        {full ? ", full" : ""}
      </span>
    </span>
  );
}

// Holds over time, a bar for each, with a line at now: what is right of it is lent until then. The table beside
// it has the same as text.
import { Name } from "../ui/Name";
import { clock, moment, stretch } from "../ui/Time";
import { shareOf, spanOf, stretchesOf, ticksOf, type Hold } from "./span";

export interface NamedHold extends Hold {
  label: string;
}

const WIDTH = 1000;

export function Timeline({ holds, now = Date.now() }: { holds: NamedHold[]; now?: number }) {
  const span = spanOf(holds, now);
  const at = (time: number) => WIDTH * shareOf(time, span);
  return (
    <div class="timeline" role="group" aria-label="Holds over time">
      <ol>
        {holds.map((hold, index) => (
          <li key={index}>
            <span class="timeline-name">
              <Name of={hold.label} />
            </span>
            <svg viewBox={`0 0 ${WIDTH} 20`} preserveAspectRatio="none" aria-hidden="true">
              <rect class="track" width={WIDTH} height="20" />
              {ticksOf(span).map((tick) => (
                <line key={tick} class="tick" x1={at(tick)} x2={at(tick)} y2="20" />
              ))}
              {stretchesOf(hold, now, span).map(({ kind, from, to }) => (
                <rect
                  key={kind}
                  class={kind}
                  x={WIDTH * from}
                  y="4"
                  width={Math.max(2, WIDTH * (to - from))}
                  height="12"
                />
              ))}
              <line class="now" x1={at(now)} x2={at(now)} y2="20" />
            </svg>
            <span class="timeline-words">{wordsOf(hold, now)}</span>
          </li>
        ))}
      </ol>
      <p class="timeline-axis">
        <span>{moment(span.start)}</span>
        <span
          class="now-words"
          style={{ left: `clamp(3.5rem, ${100 * shareOf(now, span)}%, 100% - 3.5rem)` }}
        >
          now, {clock(now)}
        </span>
        <span>{moment(span.end)}</span>
      </p>
    </div>
  );
}

function wordsOf({ from, until }: Hold, now: number): string {
  const isOver = until !== null && Date.parse(until) < now;
  return stretch(from, until) + (isOver ? ", over" : "");
}

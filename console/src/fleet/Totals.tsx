// What there is per group, and in all. A group can be looked at alone.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { href, params } from "../app/address";
import { Name } from "../ui/Name";
import { count, percent } from "../ui/numbers";
import { NO_GROUP, stateNotes, type GroupTotal } from "./select";

interface TotalsProps {
  totals: GroupTotal[];
  all: GroupTotal;
  grouping: string;
  class: string;
  isAlone: boolean;
}

/** More would be slow to show and nobody reads them; the search narrows. */
const MOST = 400;
/** As many as are in view at once: the others come when the map is painted. */
const AT_FIRST = 20;

export function Totals({ totals, all, grouping, class: name, isAlone }: TotalsProps) {
  const most = useSignal(AT_FIRST);
  useEffect(() => {
    const frame = requestAnimationFrame(() => setTimeout(() => (most.value = MOST)));
    return () => cancelAnimationFrame(frame);
  }, []);
  return (
    <section class="totals" aria-labelledby="totals-title">
      <h2 id="totals-title">
        By {grouping} {isAlone && <a href={alone(undefined)}>show all</a>}
      </h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Totals by ${grouping}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">{grouping}</th>
              <th scope="col" class="number">
                hosts
              </th>
              <th scope="col" class="number">
                free
              </th>
              <th scope="col" class="number">
                of {name}
              </th>
              <th scope="col">used</th>
            </tr>
          </thead>
          <tbody>
            <Row total={all} label="all" />
            {totals.slice(0, most.value).map((each) => (
              <Row key={each.group} total={each} />
            ))}
          </tbody>
        </table>
        {totals.length > MOST && (
          <p class="quiet">{count(totals.length - MOST)} more are not listed.</p>
        )}
      </div>
    </section>
  );
}

function Row({ total, label }: { total: GroupTotal; label?: string }) {
  const isGroup = label === undefined && total.group !== NO_GROUP;
  const notes = stateNotes(total);
  return (
    <>
      <tr class={label ? "sum" : undefined}>
        <th scope="row">
          {isGroup ? (
            <a href={alone(total.name)}>
              <Name of={total.name} />
            </a>
          ) : (
            (label ?? total.name)
          )}
        </th>
        <td class="number">{count(total.hosts)}</td>
        <td class="number">{count(total.capacity - total.used)}</td>
        <td class="number">{count(total.capacity)}</td>
        <td class="share">
          <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect class="track" width="100" height="8" />
            <rect
              class="fill"
              width={total.capacity ? (100 * total.used) / total.capacity : 0}
              height="8"
            />
          </svg>
          <span>{percent(total.used, total.capacity)}</span>
        </td>
      </tr>
      {notes.length > 0 && (
        <tr class="notes">
          <td colSpan={5}>{notes.join(", ")}</td>
        </tr>
      )}
    </>
  );
}

/** The same view of one group alone, or of all. */
function alone(group: string | undefined): string {
  const kept = Object.fromEntries(params.value);
  return href("", { ...kept, in: group, host: undefined, page: undefined });
}

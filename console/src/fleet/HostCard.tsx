// The host under the cursor: what it has, lane by lane, and where to go on.
import { href } from "../app/address";
import { Meter } from "../ui/Meter";
import { Name } from "../ui/Name";
import { shortLane } from "../map/words";
import { GROUPINGS, lanesOfHost, stateWords, type Fleet } from "../map/model";

export function HostCard({
  fleet,
  host,
  class: name,
}: {
  fleet: Fleet;
  host: number;
  class: string;
}) {
  const uuid = fleet.uuids[host]!;
  const title = fleet.names[host]!;
  const state = stateWords(fleet, host, name);
  const lanes = lanesOfHost(fleet, host);
  const groups = GROUPINGS.map(
    (each) => [each, fleet.groups[each][fleet.groupOf[each][host]!]] as const,
  );
  return (
    <section class="host-card" aria-labelledby="host-card-title">
      <h2 id="host-card-title">
        <a href={href(`/hosts/${uuid}`)}>
          <Name of={title} />
        </a>
        {state && <span class={`tag ${state}`}>{state}</span>}
      </h2>
      <p class="quiet">
        {groups.map(
          ([grouping, of]) =>
            of && (
              <span key={grouping}>
                {grouping} <Name of={of} />{" "}
              </span>
            ),
        )}
      </p>
      <table class="lanes">
        <tbody>
          {lanes.map((lane, at) => (
            <tr key={at} class={lane.class === name ? "looked" : undefined}>
              <th scope="row">
                <Name of={shortLane(lane.name ?? "", title) || lane.kind} />
              </th>
              <td>{lane.class}</td>
              <td>
                <Meter used={lane.used} capacity={lane.capacity} isShort />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="quiet">Fragmentation {Math.round(fleet.fragmentation[host]!)}%</p>
      <p class="actions">
        <a class="button" href={href(`/hosts/${uuid}`)}>
          Open
        </a>
        <a class="button" href={href("/why", { host: uuid })}>
          Why not here
        </a>
      </p>
    </section>
  );
}

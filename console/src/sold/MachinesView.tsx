// Machines: stock per shape, who holds units from when until when, who waits and why.
import { get } from "../app/api";
import { href } from "../app/address";
import { isolated } from "../ui/bidi";
import { useLoaded } from "../ui/loading";
import { Meter } from "../ui/Meter";
import { Name, ShortId } from "../ui/Name";
import { count } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import { Moment, Time } from "../ui/Time";
import { Words } from "../ui/Words";
import { untold, type HeldUnit, type MachineGroup, type MachineType, type QueuedGuest } from "./machine";
import { Timeline, type NamedHold } from "./Timeline";

export function MachinesView() {
  const loaded = useLoaded((signal) =>
    get<{ groups: MachineGroup[] }>("/dovetail/v1/machines", { signal }),
  );
  const { value, problem } = loaded.value;
  return (
    <div class="reading">
      <h1>Machines</h1>
      {problem && <Refused words={problem} />}
      {value?.groups.length === 0 && <p class="quiet">No machines are sold from this ledger.</p>}
      {value?.groups.map((each) => (
        <Group key={`${each.cluster} ${each.name}`} of={each} />
      ))}
    </div>
  );
}

function Group({ of }: { of: MachineGroup }) {
  const guests = of.holders.filter((each) => !each.stock);
  return (
    <section class="card machine-group">
      <h2>
        <Name of={of.name} />{" "}
        {of.cluster && (
          <small>
            cluster <Name of={of.cluster} />
          </small>
        )}
      </h2>
      {of.types.length === 0 ? (
        <p class="quiet">Nobody sells units of this group.</p>
      ) : (
        <Stock of={of.types} />
      )}
      <h3>Holders</h3>
      {guests.length === 0 ? <p class="quiet">Nobody holds a unit.</p> : <Holders of={guests} isTold={of.queue !== null} />}
      {guests.length > 0 && (
        <>
          <h3>Over time</h3>
          <Timeline holds={holdsOf(guests)} />
        </>
      )}
      <h3>Queue</h3>
      <Queue of={of} />
    </section>
  );
}

/** Units that are held, in the order in which they were taken. */
function holdsOf(units: HeldUnit[]): NamedHold[] {
  const ordered = [...units].sort((one, other) => one.from.localeCompare(other.from));
  return ordered.map(({ type, project, pod, from, until }) => ({
    label: `${isolated(type)} ${isolated(project)}${pod ? `/${isolated(pod)}` : ""}`,
    from,
    until,
  }));
}

function Stock({ of }: { of: MachineType[] }) {
  return (
    <table>
      <caption class="sr">Stock</caption>
      <thead>
        <tr>
          <th scope="col">shape</th>
          <th scope="col" class="number">
            max
          </th>
          <th scope="col" class="number">
            reserved
          </th>
          <th scope="col" class="number">
            used
          </th>
          <th scope="col" class="number">
            waiting
          </th>
          <th scope="col">sold</th>
        </tr>
      </thead>
      <tbody>
        {of.map((each) => (
          <tr key={each.type}>
            <th scope="row">
              <Name of={each.type} />
            </th>
            <td class="number">{count(each.max)}</td>
            <td class="number">{count(each.reserved)}</td>
            <td class="number">{count(each.used)}</td>
            <td class="number">{each.waiting === null ? "–" : count(each.waiting)}</td>
            <td>
              <Meter used={each.used} capacity={each.max} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Holders({ of, isTold }: { of: HeldUnit[]; isTold: boolean }) {
  return (
    <table>
      <caption class="sr">Holders of units</caption>
      <thead>
        <tr>
          <th scope="col">holder</th>
          <th scope="col">pod</th>
          <th scope="col">shape</th>
          <th scope="col">node</th>
          <th scope="col">namespace</th>
          <th scope="col">user</th>
          <th scope="col">since</th>
          <th scope="col">until</th>
        </tr>
      </thead>
      <tbody>
        {of.map((each) => (
          <tr key={each.consumer}>
            <th scope="row">
              <a href={href(`/holders/${each.consumer}`)}>
                <ShortId of={each.consumer} />
              </a>
            </th>
            <td>
              <Name of={each.pod} empty="–" />
            </td>
            <td>
              <Name of={each.type} />
            </td>
            <td>
              <Name of={each.node} />
            </td>
            <td>
              <Name of={each.project} />
            </td>
            <td>
              <Name of={each.user} empty="–" />
            </td>
            <td>
              <Time at={each.from} />
            </td>
            <td>
              <End of={each.until} isTold={isTold} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function End({ of, isTold }: { of: string | null; isTold: boolean }) {
  if (of === null) return <span class="quiet">{isTold ? "no end" : "not known"}</span>;
  return <Moment at={of} />;
}

function Queue({ of }: { of: MachineGroup }) {
  if (of.queue === null) return <p class="quiet">No operator has told who waits.</p>;
  const more = untold(of);
  return (
    <>
      {of.queue.length === 0 ? <p class="quiet">Nobody waits.</p> : <Waiting of={of.queue} />}
      <p class="quiet">
        {more > 0 && `And ${count(more)} more. `}
        As the operator of the cluster told <Time at={of.told_at} />.
      </p>
    </>
  );
}

function Waiting({ of }: { of: QueuedGuest[] }) {
  return (
    <table>
      <caption class="sr">Who waits, and why</caption>
      <thead>
        <tr>
          <th scope="col" class="number">
            place
          </th>
          <th scope="col">pod</th>
          <th scope="col">shape</th>
          <th scope="col">namespace</th>
          <th scope="col">since</th>
          <th scope="col">reason</th>
          <th scope="col">why</th>
        </tr>
      </thead>
      <tbody>
        {of.map((each) => (
          <tr key={each.consumer}>
            <td class="number">{count(each.position)}</td>
            <th scope="row">
              <Name of={each.pod} />
            </th>
            <td>
              <Name of={each.type} />
            </td>
            <td>
              <a href={href("/holders", { project: each.project })}>
                <Name of={each.project} />
              </a>
            </td>
            <td>
              <Time at={each.since} />
            </td>
            <td>
              <Name of={each.reason} empty="its turn is to come" />
            </td>
            <td class="wrap">
              <Words of={each.message} names={[each.pod, each.type, each.project]} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

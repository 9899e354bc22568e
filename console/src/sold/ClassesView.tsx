// Device classes: what each selects, how much of it is free, and which of them want the same devices.
import { get } from "../app/api";
import { href } from "../app/address";
import { useLoaded } from "../ui/loading";
import { Meter } from "../ui/Meter";
import { Name } from "../ui/Name";
import { count } from "../ui/numbers";
import { Refused } from "../ui/Refused";

interface DeviceClass {
  name: string;
  spec: unknown;
  allocatable: number;
  requested: number;
  available: number;
}

interface Overlap {
  classes: [string, string];
  units: number;
  available: number;
}

interface Availability {
  classes: { name: string; nodes: number | null; nodes_available: number | null }[];
  overlaps: Overlap[];
}

export function ClassesView() {
  const classes = useLoaded((signal) =>
    get<{ classes: DeviceClass[] }>("/dovetail/v1/classes", { signal }),
  );
  const shared = useLoaded((signal) =>
    get<Availability>("/dovetail/v1/classes/availability", { signal }),
  );
  const { value, problem } = classes.value;
  return (
    <div class="reading">
      <h1>Classes</h1>
      {problem && <Refused words={problem} />}
      {value?.classes.length === 0 && <p class="quiet">No class is defined.</p>}
      {value && value.classes.length > 0 && (
        <section class="card">
          <table>
            <thead>
              <tr>
                <th scope="col">class</th>
                <th scope="col" class="number">
                  free
                </th>
                <th scope="col">held</th>
                <th scope="col" class="number">
                  free on nodes
                </th>
                <th scope="col">selects devices with</th>
                <th scope="col">
                  <span class="sr">ask</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {value.classes.map((each) => (
                <tr key={each.name}>
                  <th scope="row">
                    <Name of={each.name} />
                  </th>
                  <td class="number">{count(each.available)}</td>
                  <td>
                    <Meter used={each.requested} capacity={each.allocatable} />
                  </td>
                  <td class="number">
                    <Nodes of={shared.value.value} name={each.name} />
                  </td>
                  <td class="wrap">
                    <Selector of={each.spec} />
                  </td>
                  <td>
                    <a
                      href={href("/why", {
                        query: `resources_D=CUSTOM_DEVICE:1&class_D=${encodeURIComponent(each.name)}`,
                      })}
                    >
                      where?
                    </a>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      <section class="card" aria-labelledby="overlap-title">
        <h2 id="overlap-title">Overlap</h2>
        {shared.value.problem && <Refused words={shared.value.problem} />}
        {shared.value.value && <Overlaps of={shared.value.value.overlaps} />}
      </section>
    </div>
  );
}

function Nodes({ of, name }: { of: Availability | undefined; name: string }) {
  const found = of?.classes.find((each) => each.name === name);
  if (!found || found.nodes === null) return <>–</>;
  return (
    <>
      {count(found.nodes_available ?? 0)} of {count(found.nodes)}
    </>
  );
}

function Overlaps({ of }: { of: Overlap[] }) {
  if (of.length === 0) return <p class="quiet">No two classes select the same devices.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">these classes</th>
          <th scope="col" class="number">
            want the same
          </th>
          <th scope="col" class="number">
            of them free
          </th>
        </tr>
      </thead>
      <tbody>
        {of.map((each) => (
          <tr key={each.classes.join()}>
            <th scope="row">
              <Name of={each.classes[0]} /> and <Name of={each.classes[1]} />
            </th>
            <td class="number">{count(each.units)}</td>
            <td class="number">{count(each.available)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface Expression {
  key?: string;
  operator?: string;
  values?: unknown[];
}

/** The expressions of a selector as they would be said; what is written otherwise stays as it is. */
function Selector({ of }: { of: unknown }) {
  const selectors = (of as { resourceSelector?: { matchExpressions?: Expression[] }[] })
    ?.resourceSelector;
  if (!Array.isArray(selectors)) return <code>{JSON.stringify(of)}</code>;
  return (
    <>
      {selectors.map((selector, at) => (
        <span key={at}>
          {at > 0 && <em> or </em>}
          {(selector.matchExpressions ?? []).map((each, place) => (
            <span key={place}>
              {place > 0 && ", "}
              <Name of={each.key} wraps /> {each.operator}{" "}
              <Name of={(each.values ?? []).join(" ")} empty="" wraps />
            </span>
          ))}
        </span>
      ))}
    </>
  );
}

// The map as a table, page by page, for whoever reads better than they look.
import { href } from "../app/address";
import { Name } from "../ui/Name";
import { count, percent } from "../ui/numbers";
import { capacityOf, stateWords, usedOf, type Fleet, type Grouping } from "../map/model";
import { revision } from "../map/live";
import { tablePage, turnTo } from "./choices";
import { nameOf } from "./select";

const PAGE = 100;

interface TableProps {
  fleet: Fleet;
  hosts: Int32Array;
  grouping: Grouping;
  class: string;
}

export function MapTable({ fleet, hosts, grouping, class: name }: TableProps) {
  // The columns change within the same fleet, which its properties do not show.
  void revision.value;
  const pages = Math.max(1, Math.ceil(hosts.length / PAGE));
  const at = Math.min(tablePage.value, pages - 1);
  const shown = [...hosts.subarray(at * PAGE, (at + 1) * PAGE)];
  return (
    <div class="map-table">
      <table>
        <caption class="sr">Hosts, with what is free of {name}</caption>
        <thead>
          <tr>
            <th scope="col">host</th>
            <th scope="col">{grouping}</th>
            <th scope="col">state</th>
            <th scope="col" class="number">
              free {name}
            </th>
            <th scope="col" class="number">
              capacity
            </th>
            <th scope="col" class="number">
              used
            </th>
            <th scope="col" class="number">
              fragmentation
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((host) => {
            const capacity = capacityOf(fleet, name, host);
            const used = usedOf(fleet, name, host);
            return (
              <tr key={host}>
                <th scope="row">
                  <a href={href(`/hosts/${fleet.uuids[host]}`)}>
                    <Name of={fleet.names[host]} />
                  </a>
                </th>
                <td>
                  <Name of={nameOf(fleet, grouping, fleet.groupOf[grouping][host]!)} />
                </td>
                <td>{stateWords(fleet, host, name) || "ok"}</td>
                <td class="number">{count(capacity - used)}</td>
                <td class="number">{count(capacity)}</td>
                <td class="number">{percent(used, capacity)}</td>
                <td class="number">{Math.round(fleet.fragmentation[host]!)}%</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {pages > 1 && (
        <p class="pager">
          <button type="button" disabled={at === 0} onClick={() => turnTo(at - 1)}>
            Previous
          </button>
          <span>
            page {count(at + 1)} of {count(pages)}
          </span>
          <button type="button" disabled={at === pages - 1} onClick={() => turnTo(at + 1)}>
            Next
          </button>
        </p>
      )}
    </div>
  );
}

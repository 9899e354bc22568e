// Pods on a node of a registered cluster, by name: in the ledger one holder stands for many of them.
import { PodName } from "../ui/HolderName";
import { Name } from "../ui/Name";
import { amounts, many } from "../ui/numbers";
import type { PodOnHost } from "./shapes";

export function Pods({ of }: { of: PodOnHost[] }) {
  return (
    <section class="card scroll" aria-labelledby="pods-title" tabIndex={0}>
      <h2 id="pods-title">{many(of.length, "pod")} on it</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">pod</th>
            <th scope="col">app</th>
            <th scope="col">asks for</th>
            <th scope="col">devices</th>
          </tr>
        </thead>
        <tbody>
          {of.map((each) => (
            <tr key={each.uid}>
              <th scope="row">
                <PodName of={each.name} namespace={each.namespace} />
              </th>
              <td>
                <Name of={each.app} empty="–" />
              </td>
              <td class="wrap">{amounts(each.resources)}</td>
              <td>
                {Object.entries(each.devices).map(([device, units]) => (
                  <span key={device} class="held">
                    <Name of={device} />
                    {units > 1 && ` ×${units}`}
                  </span>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

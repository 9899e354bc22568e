// One provider of a host: what it has, its traits and attributes, and who holds how much of it.
import { shortLane } from "../map/words";
import { HolderName } from "../ui/HolderName";
import { Meter } from "../ui/Meter";
import { Name, ShortId } from "../ui/Name";
import { amounts } from "../ui/numbers";
import { Time } from "../ui/Time";
import type { HostInventory, HostProvider, UnitHolder } from "./shapes";

export function ProviderPart({ provider, host }: { provider: HostProvider; host: string }) {
  const name = provider.name ?? provider.uuid;
  const title = provider.depth === 0 ? name : shortLane(name, host);
  return (
    <li class="provider" id={`provider-${provider.uuid}`} data-depth={Math.min(6, provider.depth)}>
      <h3>
        <Name of={title} /> <ShortId of={provider.uuid} />
      </h3>
      <ul class="inventories">
        {Object.entries(provider.inventories).map(([of, inventory]) => (
          <li key={of}>
            <span class="class-name">{of}</span>
            <Meter used={inventory.used} capacity={inventory.capacity} />
            <small>{conditions(inventory)}</small>
          </li>
        ))}
      </ul>
      <Tags of={provider} />
      {provider.holders.length > 0 && <Holders of={provider.holders} />}
    </li>
  );
}

/** What is unusual about an inventory. */
function conditions(of: HostInventory): string {
  const {
    total,
    reserved,
    allocation_ratio: ratio,
    min_unit: least,
    max_unit: most,
    step_size: step,
  } = of;
  return [
    `total ${total}`,
    reserved > 0 && `${reserved} reserved`,
    ratio !== 1 && `× ${ratio}`,
    least > 1 && `at least ${least}`,
    most < total && `at most ${most} at once`,
    step > 1 && `in steps of ${step}`,
  ]
    .filter(Boolean)
    .join(", ");
}

function Tags({ of }: { of: HostProvider }) {
  const attributes = Object.entries(of.attributes);
  if (of.traits.length + attributes.length + of.aggregates.length === 0) return null;
  return (
    <dl class="facts">
      {of.traits.length > 0 && (
        <>
          <dt>traits</dt>
          <dd class="wrap">{of.traits.join(" ")}</dd>
        </>
      )}
      {attributes.length > 0 && (
        <>
          <dt>attributes</dt>
          <dd>
            {attributes.map(([key, value]) => (
              <span key={key} class="attribute">
                <Name of={key} />=<Name of={value} empty="" />
              </span>
            ))}
          </dd>
        </>
      )}
      {of.aggregates.length > 0 && (
        <>
          <dt>aggregates</dt>
          <dd>
            {of.aggregates.map((each) => (
              <span key={each}>
                <ShortId of={each} />{" "}
              </span>
            ))}
          </dd>
        </>
      )}
    </dl>
  );
}

function Holders({ of }: { of: UnitHolder[] }) {
  return (
    <table class="holders">
      <caption class="sr">Who holds units of it</caption>
      <tbody>
        {of.map((each) => (
          <tr key={each.consumer}>
            <th scope="row">
              <HolderName uuid={each.consumer} pod={each.pod} namespace={each.project} />
            </th>
            <td class="wrap">{amounts(each.resources)}</td>
            <td>{each.type ?? "–"}</td>
            <td>
              <Name of={each.project} />
            </td>
            <td>
              <Time at={each.since} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

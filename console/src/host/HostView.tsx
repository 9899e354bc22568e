// A host: its tree with a holder on each unit, where it stands in the fleet, and its decisions.
import { useEffect } from "preact/hooks";
import { get } from "../app/api";
import { href } from "../app/address";
import { may } from "../app/me";
import type { ViewProps } from "../app/views";
import { fleet, follow } from "../map/live";
import { GROUPINGS } from "../map/model";
import { DecisionList } from "../ledger/DecisionList";
import { Loading, NotLoaded } from "../ui/Loading";
import { useLoaded } from "../ui/loading";
import { Name, ShortId } from "../ui/Name";
import { many } from "../ui/numbers";
import { useTitle } from "../ui/title";
import { Neighbours } from "./Neighbours";
import { ProviderPart } from "./ProviderPart";
import { Pods } from "./Pods";
import type { HostDocument } from "./shapes";

export function HostView({ rest }: ViewProps) {
  const uuid = rest[0] ?? "";
  useEffect(follow, []);
  const loaded = useLoaded((signal) =>
    get<HostDocument>(`/dovetail/v1/hosts/${encodeURIComponent(uuid)}`, { signal }),
  );
  const { value: host, problem } = loaded.value;
  useTitle(host && (host.name ?? host.uuid));
  if (problem) return <NotLoaded title="Host" words={problem} />;
  if (!host) return <Loading title="Host" what="the host" />;
  const name = host.name ?? host.uuid;
  const at = fleet.value?.byUuid.get(host.uuid);
  const holders = new Set(host.providers.flatMap((each) => each.holders.map((of) => of.consumer)));
  return (
    <div class="host">
      <h1>
        <Name of={name} />{" "}
        <small>
          <ShortId of={host.uuid} />
        </small>
      </h1>
      <Where uuid={host.uuid} />
      <p class="actions">
        {may("map") && (
          <a class="button" href={href("", { host: host.uuid })}>
            Show on the map
          </a>
        )}
        {may("explain") && (
          <a class="button" href={href("/why", { host: host.uuid })}>
            Why not here
          </a>
        )}
      </p>
      <div class="host-parts">
        <section class="card" aria-labelledby="tree-title">
          <h2 id="tree-title">
            {many(host.providers.length, "provider")}, {many(holders.size, "holder")}
          </h2>
          <ul class="tree">
            {host.providers.map((each) => (
              <ProviderPart key={each.uuid} provider={each} host={name} />
            ))}
          </ul>
        </section>
        <div class="column">
          {host.pods.length > 0 && <Pods of={host.pods} />}
          {at !== undefined && <Neighbours key={host.uuid} host={host.uuid} />}
          <section class="card" aria-labelledby="history-title">
            <h2 id="history-title">Decisions about it</h2>
            {host.decisions.length === 0 && <p class="quiet">None is kept.</p>}
            <DecisionList of={host.decisions} />
          </section>
        </div>
      </div>
    </div>
  );
}

/** Where in the fleet it stands: its groups, each with a way there. */
function Where({ uuid }: { uuid: string }) {
  const known = fleet.value;
  const at = known?.byUuid.get(uuid);
  if (!known || at === undefined) return null;
  return (
    <p class="quiet">
      {GROUPINGS.map((grouping) => {
        const name = known.groups[grouping][known.groupOf[grouping][at]!];
        return name ? (
          <span key={grouping}>
            {grouping}{" "}
            <a href={href("", { group: grouping, in: name, host: uuid })}>
              <Name of={name} />
            </a>{" "}
          </span>
        ) : null;
      })}
    </p>
  );
}

// The fleet: a heat map of hosts in their groups, totals from the start, the host under the cursor.
import { computed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { go, href, params } from "../app/address";
import { Loading, NotLoaded } from "../ui/Loading";
import { Refused } from "../ui/Refused";
import { NoHosts } from "../ui/NoHosts";
import { count, many, percent } from "../ui/numbers";
import {
  choose,
  classShown,
  colouring,
  groupFilter,
  grouping,
  isTable,
  stateFilter,
  text,
} from "./choices";
import { hostWords } from "../map/words";
import { askHolders, heldBy, holdersOf, holdersProblem } from "./holders";
import { HostCard } from "./HostCard";
import type { Block } from "../map/layout";
import { Legend } from "../map/Legend";
import { fleet, follow, problem, revision } from "../map/live";
import { MapCanvas } from "../map/MapCanvas";
import { MapTable } from "./MapTable";
import { byFragmentation, byHolder, byUse } from "../map/paint";
import { areSame, selected, stateNotes, sum, totals } from "./select";
import { Toolbar } from "./Toolbar";
import { Totals } from "./Totals";

export function FleetView() {
  useEffect(follow, []);
  const cursor = useSignal<string | undefined>(params.peek().get("host") ?? undefined);
  const shown = useMemo(signalsOf, []);
  // The cursor is part of the address, so that "look at this one" can be sent to somebody.
  useSignalEffect(() => {
    if (cursor.value !== undefined) choose({ host: cursor.value });
  });
  useSignalEffect(() => {
    void revision.value;
    if (colouring.value === "holder") askHolders(fleet.value);
  });
  void revision.value;
  const known = fleet.value;
  if (!known)
    return problem.value ? (
      <NotLoaded title="Fleet" words={problem.value} />
    ) : (
      <Loading title="Fleet" what="the fleet" />
    );
  if (known.size === 0)
    return (
      <div class="reading">
        <h1>Fleet</h1>
        <NoHosts />
      </div>
    );
  const all = sum(shown.totals.value);
  const hosts = shown.hosts.value;
  const pointed = known.byUuid.get(cursor.value ?? "");
  return (
    <div class="fleet">
      <h1 class="sr">Fleet</h1>
      <Toolbar fleet={known} onFound={() => (cursor.value = known.uuids[hosts[0] ?? -1])} />
      {problem.value && <Refused words={problem.value} />}
      <p class="headline" aria-live="polite">
        <strong>{many(hosts.length, "host")}</strong>
        {hosts.length < known.size && ` of ${count(known.size)}`}, {count(all.capacity - all.used)}{" "}
        of {count(all.capacity)} {classShown.value} free (
        {percent(all.capacity - all.used, all.capacity)})
        {stateNotes(all).map((each) => `, ${each}`)}
        {colouring.value === "holder" && holdersProblem.value && ` · ${holdersProblem.value}`}
      </p>
      <div class="fleet-parts">
        {isTable.value ? (
          <MapTable
            fleet={known}
            hosts={hosts}
            grouping={grouping.value}
            class={classShown.value}
          />
        ) : (
          <div class="map-part">
            <MapCanvas
              fleet={fleet}
              grouping={grouping}
              groupOrder={shown.order}
              hosts={shown.hosts}
              paint={shown.paint}
              class={classShown}
              view={shown.view}
              cursor={cursor}
              groupLabel={shown.labelOf}
              describe={(of, host) => hostWords(of, host, classShown.value)}
              onOpen={(uuid) => go(href(`/hosts/${uuid}`))}
              label={`Map of ${many(hosts.length, "host")}`}
            />
            <Legend
              palette={shown.paint.value?.palette ?? "used"}
              of={classShown.value}
              holders={shown.holders.value?.names ?? []}
            />
            <p id="map-help" class="quiet help">
              Arrow keys move over hosts, Enter opens, + and − zoom, 0 shows the whole, / searches.
              Drag to pan, wheel to zoom.
            </p>
          </div>
        )}
        <aside class="side" aria-label="Details">
          {pointed !== undefined && (
            <HostCard fleet={known} host={pointed} class={classShown.value} />
          )}
          <Totals
            totals={shown.totals.value}
            all={all}
            grouping={grouping.value}
            class={classShown.value}
            isAlone={groupFilter.value !== undefined}
          />
        </aside>
      </div>
    </div>
  );
}

/** What is shown follows from the fleet and the choices; each is worked out once per change. */
function signalsOf() {
  let before: Int32Array = new Int32Array();
  const hosts = computed(() => {
    // Which hosts are full changes with the numbers; which match a text does not.
    if (stateFilter.value !== "all") void revision.value;
    const known = fleet.value;
    const by = {
      text: text.value,
      state: stateFilter.value,
      class: classShown.value,
      group: groupFilter.value,
    };
    const now = known ? selected(known, grouping.value, by) : new Int32Array();
    // The same hosts are no new layout, whatever became of them.
    return (before = areSame(before, now) ? before : now);
  });
  const found = computed(() => {
    void revision.value;
    return fleet.value ? totals(fleet.value, grouping.value, hosts.value, classShown.value) : [];
  });
  const holders = computed(() =>
    fleet.value && heldBy.value ? holdersOf(fleet.value, heldBy.value) : undefined,
  );
  const paint = computed(() => {
    void revision.value;
    const known = fleet.value;
    if (!known) return undefined;
    if (colouring.value === "fragmentation") return byFragmentation(known, classShown.value);
    if (colouring.value === "holder" && holders.value) {
      return byHolder(known, classShown.value, holders.value.holderOf);
    }
    return byUse(known, classShown.value);
  });
  // Written as a text so that new numbers of the same groups are no new layout.
  const orderKey = computed(() => found.value.map((each) => each.group).join());
  const order = computed(() =>
    orderKey.value === "" ? [] : orderKey.value.split(",").map(Number),
  );
  const byGroup = computed(() => new Map(found.value.map((each) => [each.group, each])));
  const labelOf = (block: Block) => {
    const total = byGroup.peek().get(block.group);
    if (!total) return { name: "", notes: [] };
    const { capacity, used } = total;
    const free = capacity > 0 ? percent(capacity - used, capacity) : "";
    return { name: total.name, notes: [free, ...stateNotes(total).reverse()] };
  };
  const view = computed(() =>
    [grouping.value, params.value.get("in"), stateFilter.value, text.value].join("\n"),
  );
  return { hosts, totals: found, holders, paint, order, labelOf, view };
}

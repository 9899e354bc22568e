// Where in the fleet a host stands: the hosts of its group, with this one framed.
import { computed, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { go, href } from "../app/address";
import { classShown, grouping } from "../fleet/choices";
import { hostWords } from "../map/words";
import { Legend } from "../map/Legend";
import { fleet, revision } from "../map/live";
import { MapCanvas } from "../map/MapCanvas";
import { byUse } from "../map/paint";
import { nameOf, selected } from "../fleet/select";

/** `host` is a UUID. */
export function Neighbours({ host }: { host: string }) {
  const cursor = useSignal<string | undefined>(host);
  const shown = useMemo(() => {
    const group = computed(() => {
      const at = fleet.value?.byUuid.get(host);
      return at === undefined ? -1 : fleet.value!.groupOf[grouping.value][at]!;
    });
    const view = computed(() => `${grouping.value} ${group.value}`);
    const hosts = computed(() => {
      const by = { text: "", state: "all", class: "", group: group.value } as const;
      return fleet.value ? selected(fleet.value, grouping.value, by) : new Int32Array();
    });
    const paint = computed(() => {
      void revision.value;
      return fleet.value && byUse(fleet.value, classShown.value);
    });
    return { view, hosts, paint, order: computed(() => [group.value]) };
  }, [host]);
  return (
    <section class="card neighbours" aria-labelledby="neighbours-title">
      <h2 id="neighbours-title">Where it stands</h2>
      <MapCanvas
        fleet={fleet}
        grouping={grouping}
        groupOrder={shown.order}
        hosts={shown.hosts}
        paint={shown.paint}
        class={classShown}
        view={shown.view}
        cursor={cursor}
        groupLabel={(block) => ({
          name: fleet.value ? nameOf(fleet.value, grouping.value, block.group) : "",
          notes: [],
        })}
        describe={(of, at) => hostWords(of, at, classShown.value)}
        onOpen={(uuid) => go(href(`/hosts/${uuid}`))}
        isInPage
        label="Map of its neighbours"
      />
      <Legend palette="used" of={classShown.value} />
      <p id="map-help" class="quiet help">
        Arrow keys move over hosts, Enter opens one.
      </p>
    </section>
  );
}

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

export function Neighbours({ host }: { host: number }) {
  const cursor = useSignal<number | undefined>(host);
  const shown = useMemo(() => {
    const group = computed(() => fleet.value?.groupOf[grouping.value][host] ?? -1);
    const hosts = computed(() => {
      const by = { text: "", state: "all", class: "", group: group.value } as const;
      return fleet.value ? selected(fleet.value, grouping.value, by) : new Int32Array();
    });
    const paint = computed(() => {
      void revision.value;
      return fleet.value && byUse(fleet.value, classShown.value);
    });
    return { group, hosts, paint, order: computed(() => [group.value]) };
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
        cursor={cursor}
        groupLabel={(block) => ({
          name: fleet.value ? nameOf(fleet.value, grouping.value, block.group) : "",
          note: "",
        })}
        describe={(of, at) => hostWords(of, at, classShown.value)}
        onOpen={(at) => go(href(`/hosts/${fleet.peek()?.uuids[at]}`))}
        label="Map of its neighbours"
      />
      <Legend palette="used" of={classShown.value} />
      <p id="map-help" class="quiet help">
        Arrow keys move over hosts, Enter opens one.
      </p>
    </section>
  );
}

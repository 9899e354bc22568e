// The fleet with a verdict on each host: where the request fits, where not now, where never.
import { computed, useSignalEffect, type ReadonlySignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { classShown, grouping } from "../fleet/choices";
import { Legend } from "../map/Legend";
import { fleet, refresh } from "../map/live";
import { MapCanvas } from "../map/MapCanvas";
import { byVerdict, NOT_LOOKED_AT } from "../map/paint";
import { selected, totals } from "../fleet/select";
import { isolated } from "../ui/bidi";
import { count } from "../ui/numbers";
import type { Loaded } from "../ui/loading";
import { Refused } from "../ui/Refused";
import type { HostVerdicts } from "./questions";

interface VerdictMapProps {
  verdicts: ReadonlySignal<Loaded<HostVerdicts>>;
  cursor: Signal<string | undefined>;
  onOpen: (uuid: string) => void;
  /** Have them asked for again. */
  onOld: () => void;
}

const VERDICT_WORDS = ["fits", "does not fit now", "can never fit", "not looked at"];
const EVERYTHING = { text: "", state: "all", class: "" } as const;

/** What there is to do with a group, first. */
function verdictNotes(counts: number[] = []): string[] {
  return ["fit", "not now", "never", "not looked at"]
    .map((words, verdict) => (counts[verdict] ? `${count(counts[verdict])} ${words}` : ""))
    .filter(Boolean);
}

/** Between two questions about a fleet whose hosts come and go all the time. */
const PAUSE = 500;

export function VerdictMap({ verdicts, cursor, onOpen, onOld }: VerdictMapProps) {
  const shown = useMemo(() => {
    // They are in the order of the map that they were made for: on another they are nobody's.
    const own = computed(() => {
      const found = verdicts.value.value;
      return found && found.layout === fleet.value?.layout ? found.verdict : [];
    });
    const hosts = computed(() =>
      fleet.value ? selected(fleet.value, grouping.value, EVERYTHING) : new Int32Array(),
    );
    const groups = computed(() =>
      fleet.value ? totals(fleet.value, grouping.value, hosts.value, "") : [],
    );
    const order = computed(() => groups.value.map((each) => each.group));
    const names = computed(() => new Map(groups.value.map((each) => [each.group, each.name])));
    const paint = computed(() =>
      fleet.value ? byVerdict(fleet.value, own.value) : undefined,
    );
    const byGroup = computed(() => {
      const of = fleet.value?.groupOf[grouping.value] ?? new Int32Array();
      const found = new Map<number, number[]>();
      for (const host of hosts.value) {
        const counts = found.get(of[host]!) ?? [0, 0, 0, 0];
        counts[own.value[host] ?? NOT_LOOKED_AT]!++;
        found.set(of[host]!, counts);
      }
      return found;
    });
    const all = computed(() =>
      VERDICT_WORDS.map((_, verdict) =>
        [...byGroup.value.values()].reduce((sum, counts) => sum + counts[verdict]!, 0),
      ),
    );
    return { hosts, order, names, own, paint, byGroup, all };
  }, []);
  // Of another fleet than ours: either may be the older one.
  useSignalEffect(() => {
    const found = verdicts.value.value;
    const known = fleet.value;
    if (!found || !known || found.layout === known.layout) return undefined;
    const timer = setTimeout(async () => {
      await refresh();
      if (verdicts.peek().value === found && found.layout !== fleet.peek()?.layout) onOld();
    }, PAUSE);
    return () => clearTimeout(timer);
  });
  return (
    <section class="card verdict-map" aria-labelledby="verdict-map-title">
      <h2 id="verdict-map-title">On the map</h2>
      {verdicts.value.problem && <Refused words={verdicts.value.problem} />}
      <MapCanvas
        fleet={fleet}
        grouping={grouping}
        groupOrder={shown.order}
        hosts={shown.hosts}
        paint={shown.paint}
        class={classShown}
        view={grouping}
        cursor={cursor}
        groupLabel={(block) => ({
          name: shown.names.peek().get(block.group) ?? "",
          notes: verdictNotes(shown.byGroup.peek().get(block.group)),
        })}
        describe={(of, host) =>
          `${isolated(of.names[host]!)}: ${VERDICT_WORDS[shown.own.value[host] ?? 3]}`
        }
        onOpen={onOpen}
        isInPage
        label="Map of verdicts"
      />
      <Legend palette="verdict" of="" counts={shown.all.value} />
      {verdicts.value.value?.complete === false && (
        <p class="quiet">Time was over before every host was looked at.</p>
      )}
      <p id="map-help" class="quiet help">
        Arrow keys move over hosts, Enter asks why (or why not) there.
      </p>
    </section>
  );
}

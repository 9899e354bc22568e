// What is looked at and how: read from the address, so that it can be shared.
import { computed } from "@preact/signals";
import { params, setParams } from "../app/address";
import { fleet } from "../map/live";
import { groupingsOf, type Grouping } from "../map/model";
import { STATES, type StateFilter } from "./select";

export const COLOURINGS = ["free", "fragmentation", "holder"] as const;
export type Colouring = (typeof COLOURINGS)[number];

/** Classes that people think of first; else the first of the fleet. */
const USUAL = ["VCPU", "PCPU", "CUSTOM_MILLICPU", "MEMORY_MB"];

export const grouping = computed<Grouping>(() => {
  const known = fleet.value ? groupingsOf(fleet.value) : [];
  const asked = params.value.get("group") as Grouping | null;
  return asked && (known.includes(asked) || known.length === 0) ? asked : (known[0] ?? "rack");
});

export const classShown = computed(() => {
  const classes = fleet.value?.classes ?? [];
  const asked = params.value.get("class");
  if (asked && classes.includes(asked)) return asked;
  return USUAL.find((each) => classes.includes(each)) ?? classes[0] ?? "";
});

export const colouring = computed<Colouring>(() => oneOf(COLOURINGS, params.value.get("colour")));
export const stateFilter = computed<StateFilter>(() => oneOf(STATES, params.value.get("state")));
export const text = computed(() => params.value.get("q") ?? "");
export const isTable = computed(() => params.value.get("as") === "table");

/** Of the table, counted from 0; people count from 1. */
export const tablePage = computed(() =>
  Math.max(0, Math.floor(Number(params.value.get("page") ?? 1) || 1) - 1),
);

/** One group of the grouping, by its name. */
export const groupFilter = computed<number | undefined>(() => {
  const name = params.value.get("in");
  if (!name || !fleet.value) return undefined;
  const at = fleet.value.groups[grouping.value].indexOf(name);
  return at < 0 ? undefined : at;
});

export function choose(changes: Record<string, string | undefined>): void {
  setParams(changes);
}

/** Look at other hosts: of them the first page. */
export function narrow(changes: Record<string, string | undefined>): void {
  setParams({ page: undefined, ...changes });
}

/** Another page is a step that can be taken back. */
export function turnTo(page: number): void {
  setParams({ page: page > 0 ? String(page + 1) : undefined }, true);
}

function oneOf<T extends string>(known: readonly T[], asked: string | null): T {
  return known.includes(asked as T) ? (asked as T) : known[0]!;
}

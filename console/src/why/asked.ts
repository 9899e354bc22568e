// What is asked, as the address has it, so that an answer can be sent to somebody.
import { computed, signal } from "@preact/signals";
import { params } from "../app/address";
import type { Claimed } from "./questions";
import { supposedOf } from "./supposing";

export const query = computed(() => params.value.get("query") ?? "");
export const host = computed(() => params.value.get("host") ?? "");
export const areMovesAsked = computed(() => params.value.get("moves") === "1");
/** As a text, which is the same while the same is supposed. */
export const supposedText = computed(() => JSON.stringify(supposedOf(params.value)));
/** Grows when something was claimed or moved: everything is asked again. */
export const turn = signal(0);
/** What was claimed here last; it is told as long as the same is asked, also if nothing more fits. */
export const lastClaim = signal<{ query: string; claimed: Claimed } | undefined>(undefined);
export const claimedHere = computed(() =>
  lastClaim.value?.query === query.value ? lastClaim.value.claimed : undefined,
);

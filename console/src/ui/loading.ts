// Something that is fetched: what there is of it, and why there is not.
import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import { isAbort, wordsOf } from "../app/api";

export interface Loaded<T> {
  value: T | undefined;
  problem: string | undefined;
  busy: boolean;
}

/**
 * Fetch whenever a signal that `load` reads changes; an answer that is no longer asked for is
 * dropped. What there was stays until there is something newer, so that the page does not jump.
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T> | undefined,
): Signal<Loaded<T>> {
  const state = useSignal<Loaded<T>>({ value: undefined, problem: undefined, busy: true });
  useSignalEffect(() => {
    const stop = new AbortController();
    const promise = load(stop.signal);
    if (!promise) {
      state.value = { value: undefined, problem: undefined, busy: false };
      return undefined;
    }
    state.value = { ...state.peek(), busy: true };
    promise.then(
      (value) => {
        if (!stop.signal.aborted) state.value = { value, problem: undefined, busy: false };
      },
      (error: unknown) => {
        if (stop.signal.aborted || isAbort(error)) return;
        state.value = { value: undefined, problem: wordsOf(error), busy: false };
      },
    );
    return () => stop.abort();
  });
  return state;
}

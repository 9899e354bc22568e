// A step before something is written: what will happen, yes or no.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface ConfirmProps {
  label: string;
  question: ComponentChildren;
  yes: string;
  onYes: () => Promise<void> | void;
  disabled?: boolean;
  main?: boolean;
}

export function Confirm({
  label,
  question,
  yes,
  onYes,
  disabled = false,
  main = false,
}: ConfirmProps) {
  const state = useSignal<"closed" | "asked" | "busy">("closed");
  // Who answered by keyboard goes on from where they were asked.
  const isAnswered = useRef(false);
  const agree = useRef<HTMLButtonElement>(null);
  // Once: who went on to "No" stays there, whatever else is rendered anew.
  useLayoutEffect(() => {
    if (state.value === "asked") agree.current?.focus();
  }, [state.value]);
  if (state.value === "closed") {
    return (
      <button
        type="button"
        class={main ? "main" : ""}
        disabled={disabled}
        onClick={() => (state.value = "asked")}
        ref={(element) => {
          if (!element || !isAnswered.current) return;
          isAnswered.current = false;
          element.focus();
        }}
      >
        {label}
      </button>
    );
  }
  const run = async () => {
    state.value = "busy";
    await onYes();
    isAnswered.current = true;
    state.value = "closed";
  };
  return (
    <span class="confirm" role="group" aria-label={label}>
      <span>{question}</span>
      <button
        type="button"
        class="main"
        disabled={state.value === "busy"}
        onClick={() => void run()}
        ref={agree}
      >
        {yes}
      </button>
      <button
        type="button"
        disabled={state.value === "busy"}
        onClick={() => {
          isAnswered.current = true;
          state.value = "closed";
        }}
      >
        No
      </button>
    </span>
  );
}

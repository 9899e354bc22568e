// Fields of a search say what the address says.
import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { params } from "../app/address";

/**
 * For a form whose fields are named after parameters. They are written when the address changes,
 * by a step back for one; what somebody is typing meanwhile stays.
 */
export function useFields(names: readonly string[]) {
  const form = useRef<HTMLFormElement>(null);
  useSignalEffect(() => {
    const asked = params.value;
    for (const name of names) {
      const field = form.current?.elements.namedItem(name);
      if (field instanceof HTMLInputElement) field.value = asked.get(name) ?? "";
    }
  });
  return form;
}

// The request: built in a form, or pasted.
import { computed, useSignal, useSignalEffect } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { fleet } from "../../map/live";
import { Name } from "../../ui/Name";
import { query } from "../asked";
import { PasteForm } from "./PasteForm";
import { emptyGroup, emptyRequest, requestOf, type FormRequest } from "./request";
import { RequestForm } from "./RequestForm";

interface AskingProps {
  onAsk: (query: string) => void;
  /** The host that is asked about, if it is one alone. */
  about: string;
  onAnywhere: () => void;
}

export function Asking({ onAsk, about, onAnywhere }: AskingProps) {
  const isPasting = useSignal(false);
  const request = useSignal<FormRequest>(firstRequest([]));
  const isTouched = useSignal(false);
  const classes = useMemo(() => computed(() => fleet.value?.classes ?? []), []);
  // Another query in the address, by a remedy or by going back, is another content of the form. A
  // fleet that is told anew is none: whoever is filling it in goes on.
  useSignalEffect(() => {
    if (query.value) request.value = requestOf(query.value);
    else if (!isTouched.peek()) request.value = firstRequest(classes.value);
    else return;
    isTouched.value = false;
  });
  const change = (next: FormRequest) => {
    request.value = next;
    isTouched.value = true;
  };
  // Who took it off by keyboard goes on in the form.
  const build = useRef<HTMLButtonElement>(null);
  const takeOff = () => {
    build.current?.focus();
    onAnywhere();
  };
  return (
    <section class="card" aria-labelledby="request-title">
      <h2 id="request-title">Request</h2>
      {about && (
        <p class="about">
          <span>
            about <Name of={about} />
          </span>
          <button type="button" aria-label="Ask about every host" onClick={takeOff}>
            ×
          </button>
        </p>
      )}
      <p class="actions" role="group" aria-label="How to ask">
        <button
          ref={build}
          type="button"
          aria-pressed={!isPasting.value}
          onClick={() => (isPasting.value = false)}
        >
          Build
        </button>
        <button
          type="button"
          aria-pressed={isPasting.value}
          onClick={() => (isPasting.value = true)}
        >
          Paste
        </button>
      </p>
      {isPasting.value ? (
        <PasteForm classes={classes.value} onAsk={onAsk} />
      ) : (
        <RequestForm
          request={request.value}
          classes={classes.value}
          onAsk={onAsk}
          onChange={change}
        />
      )}
    </section>
  );
}

function firstRequest(classes: string[]): FormRequest {
  const first = { class: classes.includes("VCPU") ? "VCPU" : (classes[0] ?? "VCPU"), amount: 8 };
  return { ...emptyRequest(), groups: [{ ...emptyGroup(""), amounts: [first] }] };
}

// Words that a request can be made of in this fleet, for the form to offer.
import { signal } from "@preact/signals";
import { get } from "../../app/api";

export const traits = signal<string[]>([]);
export const deviceClasses = signal<string[]>([]);

let isAsked = false;

/** Once per page; who may not read them types them. */
export function learnVocabulary(): void {
  if (isAsked) return;
  isAsked = true;
  get<{ traits: string[] }>("/traits?associated=true").then(
    (found) => (traits.value = found.traits.sort()),
    () => undefined,
  );
  get<{ classes: { name: string }[] }>("/dovetail/v1/classes").then(
    (found) => (deviceClasses.value = found.classes.map((each) => each.name)),
    () => undefined,
  );
}

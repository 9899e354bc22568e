// Who looks, and what may be offered to them: so much of it as has to be known before anything is
// asked, the page says itself. The server decides again on every request.
import { signal } from "@preact/signals";
import { get, wordsOf } from "./api";

export interface Me {
  user: string | null;
  project: string | null;
  roles: string[];
  may: Record<string, boolean>;
  login: boolean;
  uses: Record<string, boolean>;
  version: string;
}

const toldByPage = new Set(document.body.dataset.may?.split(" "));

export const me = signal<Me | undefined>(undefined);

/** Why it is not known, if it could not be asked. */
export const unknownMe = signal<string | undefined>(undefined);

export async function learnMe(): Promise<void> {
  try {
    me.value = await get<Me>("/console/me");
  } catch (error) {
    unknownMe.value = wordsOf(error);
  }
}

export function may(what: string): boolean {
  return me.value ? (me.value.may[what] ?? false) : toldByPage.has(what);
}

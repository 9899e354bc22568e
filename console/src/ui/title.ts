// The title of the tab: what is looked at, so that tabs can be told apart.
import { useEffect } from "preact/hooks";
import { path } from "../app/address";
import { viewOf } from "../app/views";
import { isolated } from "./bidi";

/** For the app: the view of the address by its own name. */
export function setTitle(words = viewOf(path.peek())?.view.title ?? "Not found"): void {
  document.title = `${words} · Dovetail`;
}

/** For views of one thing: it is named as soon as it is known. */
export function useTitle(words: string | undefined): void {
  useEffect(() => setTitle(words ? isolated(words) : undefined), [words]);
}

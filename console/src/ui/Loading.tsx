// A view that is on its way. It has its heading already, for whoever goes by headings.
import { Refused } from "./Refused";

export function Loading({ title, what }: { title: string; what: string }) {
  return (
    <div>
      <h1>{title}</h1>
      <p class="quiet">Loading {what}.</p>
    </div>
  );
}

/** The same where it could not be loaded. */
export function NotLoaded({ title, words }: { title: string; words: string }) {
  return (
    <div>
      <h1>{title}</h1>
      <Refused words={words} />
    </div>
  );
}

// What went wrong, in the server's words, where screen readers hear of it.
import { Words } from "./Words";

export function Refused({ words }: { words: string }) {
  return (
    <p class="refused" role="alert">
      <Words of={words} />
    </p>
  );
}

// What went wrong, in the server's words, where screen readers hear of it.

export function Refused({ words }: { words: string }) {
  return (
    <p class="refused" role="alert">
      {words}
    </p>
  );
}

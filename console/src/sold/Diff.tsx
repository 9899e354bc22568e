// A unified diff: signs say what colours say.

export function Diff({ text }: { text: string }) {
  return (
    <pre class="diff" tabIndex={0}>
      {text.split("\n").map((line, at) => (
        <div key={at} class={classOf(line)}>
          {line || " "}
        </div>
      ))}
    </pre>
  );
}

function classOf(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---")) return "file";
  if (line.startsWith("@@")) return "hunk";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
}

// Where a newcomer begins: questions about this fleet to click.
import { fleet } from "../map/live";

/** What a newcomer can ask at once: amounts that this fleet has and amounts that it does not. */
export function Beginning({ onAsk }: { onAsk: (query: string) => void }) {
  const known = fleet.value;
  if (!known) return <p class="quiet">Loading the fleet.</p>;
  return (
    <section class="card">
      <h2>Ask something</h2>
      <p>
        Build a request or paste one. The answer says where it fits; if nowhere, why, and what would
        help. For example:
      </p>
      <ul class="choices">
        {examples(known.classes, known.capacity).map((each) => (
          <li key={each}>
            <code class="wrap">{each}</code>
            <button type="button" onClick={() => onAsk(each)}>
              Ask
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function examples(classes: string[], capacity: Map<string, Float64Array>): string[] {
  const most = (name: string) =>
    (capacity.get(name) ?? new Float64Array()).reduce((one, other) => Math.max(one, other), 0);
  const sized = classes.filter((name) => most(name) > 0);
  const first = sized.find((name) => name === "VCPU") ?? sized[0];
  if (!first) return [];
  const second = sized.find((name) => /GPU|FPGA|VF/.test(name) && most(name) > 1);
  const found = [
    `resources=${first}:${Math.max(1, Math.floor(most(first) / 4))}`,
    `resources=${first}:${most(first) + 1}`,
  ];
  if (second)
    found.push(
      `resources_A=${first}:${Math.max(1, Math.floor(most(first) / 3))}&resources_B=${second}:${most(second)}&same_subtree=_A,_B`,
    );
  return found;
}

// The log of decisions, newest first, of all or of one consumer.
import { get } from "../app/api";
import { href, params, setParams } from "../app/address";
import { useFields } from "../ui/fields";
import { useLoaded } from "../ui/loading";
import { Refused } from "../ui/Refused";
import { useTitle } from "../ui/title";
import type { Decision } from "./decision";
import { DecisionList } from "./DecisionList";

const PAGE = 25;

export function DecisionsView() {
  const form = useFields(["consumer"]);
  const loaded = useLoaded((signal) => {
    const asked = new URLSearchParams({ limit: String(PAGE) });
    for (const key of ["consumer", "before"]) {
      const value = params.value.get(key);
      if (value) asked.set(key, value);
    }
    return get<{ decisions: Decision[] }>(`/dovetail/v1/decisions?${asked}`, { signal });
  });
  const { value, problem } = loaded.value;
  const found = value?.decisions ?? [];
  const last = found.at(-1)?.id;
  const consumer = params.value.get("consumer") ?? undefined;
  useTitle(consumer && `Decisions about ${consumer}`);
  return (
    <div class="reading">
      <h1>Decisions</h1>
      <form
        ref={form}
        class="toolbar"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          const text = new FormData(event.currentTarget).get("consumer");
          setParams({ consumer: String(text ?? "").trim() || undefined, before: undefined }, true);
        }}
      >
        <label>
          Of the consumer
          <input type="search" name="consumer" placeholder="UUID" size={38} />
        </label>
        <button type="submit">Show</button>
      </form>
      {problem && <Refused words={problem} />}
      {value && found.length === 0 && <p class="quiet">No decision is kept. Claims make them.</p>}
      {found.length > 0 && (
        <section class="card" aria-labelledby="log-title">
          <h2 id="log-title">Newest first</h2>
          <DecisionList of={found} />
        </section>
      )}
      <p class="pager">
        {params.value.get("before") && <a href={href("/decisions", { consumer })}>Newest</a>}
        {found.length === PAGE && (
          <a href={href("/decisions", { consumer, before: String(last) })}>Older</a>
        )}
      </p>
    </div>
  );
}

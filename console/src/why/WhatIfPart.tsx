// What if: hosts drained, consumers gone, hosts added or grown. Nothing is written.
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { href } from "../app/address";
import { Name, ShortId } from "../ui/Name";
import { count, many } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import type { Loaded } from "../ui/loading";
import { Words } from "../ui/Words";
import { namesIn } from "./explanation";
import { Funnel } from "./Funnel";
import type { Supposed, WhatIf } from "./questions";
import { grownText, isNothing } from "./supposing";

interface WhatIfProps {
  supposed: Supposed;
  answer: ReadonlySignal<Loaded<WhatIf>>;
  onChange: (supposed: Supposed) => void;
  nameOf: (uuid: string) => string;
}

const KINDS = {
  drain: "Drain a host",
  release: "Release a consumer",
  add: "Add a host like",
} as const;
type Kind = keyof typeof KINDS;

export function WhatIfPart({ supposed, answer, onChange, nameOf }: WhatIfProps) {
  const kind = useSignal<Kind>("drain");
  const text = useSignal("");
  const suppose = () => {
    const what = text.value.trim();
    if (!what) return;
    if (kind.value === "add")
      onChange({ ...supposed, add: [...supposed.add, { like: what, times: 1 }] });
    else onChange({ ...supposed, [kind.value]: [...new Set([...supposed[kind.value], what])] });
    text.value = "";
  };
  return (
    <section class="card whatif" aria-labelledby="whatif-title">
      <h2 id="whatif-title">What if</h2>
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault();
          suppose();
        }}
      >
        <select
          aria-label="What to suppose"
          value={kind.value}
          onChange={(event) => (kind.value = event.currentTarget.value as Kind)}
        >
          {Object.entries(KINDS).map(([each, words]) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
        <input
          aria-label={kind.value === "release" ? "UUID of the consumer" : "Name of the host"}
          placeholder={kind.value === "release" ? "UUID" : "host name"}
          list={kind.value === "release" ? "no-list" : "known-hosts"}
          value={text.value}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
        <button type="submit">Suppose</button>
      </form>
      <ul class="supposed">
        {supposed.drain.map((each) => (
          <Item
            key={each}
            label={`drained ${nameOf(each)}`}
            onRemove={() =>
              onChange({
                ...supposed,
                drain: supposed.drain.filter((of) => of !== each),
              })
            }
          >
            <Name of={nameOf(each)} /> is drained
          </Item>
        ))}
        {supposed.release.map((each) => (
          <Item
            key={each}
            label={`released ${each}`}
            onRemove={() =>
              onChange({
                ...supposed,
                release: supposed.release.filter((of) => of !== each),
              })
            }
          >
            consumer <ShortId of={each} /> is gone
          </Item>
        ))}
        {supposed.add.map((each, at) => (
          <Item
            key={at}
            label={`hosts like ${each.like}`}
            onRemove={() =>
              onChange({
                ...supposed,
                add: supposed.add.filter((_, of) => of !== at),
              })
            }
          >
            <input
              type="number"
              min={1}
              max={100}
              value={each.times}
              aria-label={`How many hosts like ${each.like}`}
              onChange={(event) => {
                const times = event.currentTarget.valueAsNumber || 1;
                onChange({
                  ...supposed,
                  add: supposed.add.map((of, index) => (index === at ? { ...of, times } : of)),
                });
              }}
            />{" "}
            more like <Name of={nameOf(each.like)} />
          </Item>
        ))}
        {supposed.grow.map((each) => (
          <Item
            key={grownText(each)}
            label={`${each.amount} ${each.resource_class} more on ${each.provider_uuid}`}
            onRemove={() =>
              onChange({ ...supposed, grow: supposed.grow.filter((of) => of !== each) })
            }
          >
            {count(each.amount)} <Name of={each.resource_class} /> more on{" "}
            <a href={href(`/hosts/${encodeURIComponent(each.provider_uuid)}`)}>
              <ShortId of={each.provider_uuid} />
            </a>
          </Item>
        ))}
      </ul>
      {isNothing(supposed) ? (
        <p class="quiet">Nothing is written: it is tried on a copy.</p>
      ) : (
        <Answer of={answer.value} />
      )}
    </section>
  );
}

function Item({
  label,
  onRemove,
  children,
}: {
  label: string;
  onRemove: () => void;
  children: preact.ComponentChildren;
}) {
  return (
    <li>
      <span>{children}</span>
      <button type="button" aria-label={`Do not suppose: ${label}`} onClick={onRemove}>
        ×
      </button>
    </li>
  );
}

function Answer({ of }: { of: Loaded<WhatIf> }) {
  if (of.problem) return <Refused words={of.problem} />;
  if (!of.value) return <p class="quiet">Trying.</p>;
  const { before, after, explanation } = of.value;
  return (
    <div aria-live="polite" class="whatif-answer">
      <p>
        <strong>
          {many(before.hosts, "host")} fit now, {many(after.hosts, "host")} would.
        </strong>{" "}
        <span class={`tag ${explanation.verdict}`}>{explanation.verdict.replace("_", " ")}</span>
      </p>
      <p>
        <Words of={explanation.summary} names={namesIn(explanation)} />
      </p>
      <Funnel of={explanation} />
    </div>
  );
}

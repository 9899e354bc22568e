// One group of a request: what one provider has to serve.
import { Choice } from "../../ui/Choice";
import { groupName, suffixOf, type Amount, type RequestGroup } from "./request";

interface GroupProps {
  group: RequestGroup;
  classes: string[];
  onChange: (group: RequestGroup) => void;
  onRemove?: (() => void) | undefined;
}

export function GroupFields({ group, classes, onChange, onRemove }: GroupProps) {
  const name = groupName(group.suffix);
  const legend = name ? `Group ${name}` : "Anywhere on the host";
  const set = (changes: Partial<RequestGroup>) => onChange({ ...group, ...changes });
  const setAmount = (at: number, amount: Amount) =>
    set({ amounts: group.amounts.map((each, index) => (index === at ? amount : each)) });
  const unused = classes.find((each) => !group.amounts.some((amount) => amount.class === each));
  return (
    <fieldset class="group">
      <legend>{legend}</legend>
      {group.amounts.map((each, at) => (
        <div class="amount" key={at}>
          <Choice
            label="class"
            of={classes.includes(each.class) || !each.class ? classes : [each.class, ...classes]}
            value={each.class}
            onChange={(of) => setAmount(at, { ...each, class: of })}
          />
          <label>
            amount
            <input
              type="number"
              min={1}
              step={1}
              required
              value={each.amount || ""}
              onInput={(event) =>
                setAmount(at, {
                  ...each,
                  amount: event.currentTarget.valueAsNumber || 0,
                })
              }
            />
          </label>
          <button
            type="button"
            aria-label={`Remove ${each.class} of ${legend}`}
            onClick={() => set({ amounts: group.amounts.filter((_, index) => index !== at) })}
          >
            ×
          </button>
        </div>
      ))}
      <div class="actions">
        <button
          type="button"
          disabled={!unused}
          onClick={() => set({ amounts: [...group.amounts, { class: unused!, amount: 1 }] })}
        >
          Add a class
        </button>
        {onRemove && (
          <button type="button" onClick={onRemove}>
            Remove the group
          </button>
        )}
      </div>
      <Words
        label="traits"
        hint="HW_CPU_X86_AVX2,!CUSTOM_OLD"
        list="known-traits"
        of={group.required}
        onChange={(required) => set({ required })}
      />
      <details
        open={!!(group.memberOf.length || group.inTree || group.attributes || group.deviceClass)}
      >
        <summary>More conditions</summary>
        <label>
          name of the group
          <input
            value={name}
            onChange={(event) => set({ suffix: suffixOf(event.currentTarget.value) })}
          />
        </label>
        <label>
          device class
          <input
            value={group.deviceClass}
            list="known-device-classes"
            onChange={(event) => set({ deviceClass: event.currentTarget.value.trim() })}
          />
        </label>
        <label>
          attributes
          <input
            value={group.attributes}
            onChange={(event) => set({ attributes: event.currentTarget.value.trim() })}
          />
        </label>
        <label>
          in the tree of (UUID)
          <input
            value={group.inTree}
            onChange={(event) => set({ inTree: event.currentTarget.value.trim() })}
          />
        </label>
        <Words
          label="in the aggregate (UUID)"
          of={group.memberOf}
          onChange={(memberOf) => set({ memberOf })}
        />
      </details>
    </fieldset>
  );
}

interface WordsProps {
  label: string;
  of: string[];
  onChange: (of: string[]) => void;
  hint?: string;
  list?: string | undefined;
}

/** Conditions with spaces between them; within each the query's own commas. */
function Words({ label, of, onChange, hint = "", list }: WordsProps) {
  return (
    <label>
      {label}
      <input
        value={of.join(" ")}
        placeholder={hint}
        spellcheck={false}
        autocomplete="off"
        list={list}
        onChange={(event) => onChange(event.currentTarget.value.split(/\s+/).filter(Boolean))}
      />
    </label>
  );
}

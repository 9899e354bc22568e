// A form that builds a request, group by group; what it builds is shown as the query it is.
import { useSignal } from "@preact/signals";
import { Choice } from "../../ui/Choice";
import { GroupFields } from "./GroupFields";
import { emptyGroup, freeSuffix, groupName, queryOf, type FormRequest } from "./request";
import { deviceClasses, traits } from "./vocabulary";

interface FormProps {
  request: FormRequest;
  classes: string[];
  onChange: (request: FormRequest) => void;
  onAsk: (query: string) => void;
}

const POLICIES = ["", "none", "isolate"] as const;
const POLICY_WORDS = { "": "not said", none: "they may", isolate: "each its own" };

export function RequestForm({ request, classes, onChange, onAsk }: FormProps) {
  const set = (changes: Partial<FormRequest>) => onChange({ ...request, ...changes });
  const query = queryOf(request);
  const named = request.groups.filter((each) => each.suffix !== "");
  const copied = useSignal(false);
  return (
    <form
      class="request"
      onSubmit={(event) => {
        event.preventDefault();
        onAsk(query);
      }}
    >
      <datalist id="known-traits">
        {traits.value.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <datalist id="known-device-classes">
        {deviceClasses.value.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      {request.groups.map((group, at) => (
        <GroupFields
          key={at}
          group={group}
          classes={classes}
          onChange={(next) => set(replaced(request, at, next))}
          onRemove={
            request.groups.length > 1
              ? () =>
                  set({
                    groups: request.groups.filter((_, index) => index !== at),
                    sameSubtree: without(request, group.suffix),
                  })
              : undefined
          }
        />
      ))}
      <div class="actions">
        <button
          type="button"
          onClick={() => {
            const amounts = [{ class: classes[0] ?? "VCPU", amount: 1 }];
            set({
              groups: [...request.groups, { ...emptyGroup(freeSuffix(request)), amounts }],
            });
          }}
        >
          Add a group
        </button>
      </div>
      {named.length > 1 && (
        <fieldset class="affinity">
          <legend>How groups lie to each other</legend>
          <span id="one-subtree">in one subtree:</span>
          {named.map((group) => (
            <label class="line" key={group.suffix}>
              <input
                type="checkbox"
                checked={request.sameSubtree[0]?.includes(group.suffix) ?? false}
                aria-describedby="one-subtree"
                onChange={(event) =>
                  set({
                    sameSubtree: toggled(request, group.suffix, event.currentTarget.checked),
                  })
                }
              />
              {groupName(group.suffix)}
            </label>
          ))}
          <Choice
            label="share a provider"
            of={POLICIES}
            value={request.groupPolicy as "" | "none" | "isolate"}
            words={(each) => POLICY_WORDS[each]}
            onChange={(groupPolicy) => set({ groupPolicy })}
          />
        </fieldset>
      )}
      <label>
        traits of the host itself
        <input
          value={request.rootRequired}
          list="known-traits"
          spellcheck={false}
          autocomplete="off"
          onChange={(event) => set({ rootRequired: event.currentTarget.value.trim() })}
        />
      </label>
      <p class="query">
        <code class="wrap">{query || "nothing is asked for yet"}</code>
      </p>
      <div class="actions">
        <button type="submit" class="main" disabled={query === ""}>
          Why, or why not?
        </button>
        <button
          type="button"
          disabled={query === ""}
          onClick={() => {
            void navigator.clipboard?.writeText(query).then(() => (copied.value = true));
          }}
        >
          {copied.value ? "Copied" : "Copy the query"}
        </button>
      </div>
    </form>
  );
}

/** A group that is called something else is so in relations, too. */
function replaced(
  request: FormRequest,
  at: number,
  next: FormRequest["groups"][number],
): Partial<FormRequest> {
  const before = request.groups[at]!.suffix;
  return {
    groups: request.groups.map((each, index) => (index === at ? next : each)),
    sameSubtree: request.sameSubtree.map((set) =>
      set.map((each) => (each === before ? next.suffix : each)),
    ),
  };
}

function toggled(request: FormRequest, suffix: string, isIn: boolean): string[][] {
  const [first = [], ...others] = request.sameSubtree;
  return [isIn ? [...first, suffix] : first.filter((each) => each !== suffix), ...others];
}

function without(request: FormRequest, suffix: string): string[][] {
  return request.sameSubtree.map((set) => set.filter((each) => each !== suffix));
}

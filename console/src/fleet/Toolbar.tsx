// How the fleet is looked at: grouping, class, colour, state, and the search.
import { useEffect, useRef } from "preact/hooks";
import {
  choose,
  classShown,
  colouring,
  COLOURINGS,
  grouping,
  isTable,
  narrow,
  stateFilter,
  text,
} from "./choices";
import { following } from "../map/live";
import { groupingsOf, type Fleet } from "../map/model";
import { STATES } from "./select";
import { Choice } from "../ui/Choice";

const FOLLOWING = {
  connecting: "connecting",
  live: "live",
  behind: "catching up",
  polling: "every 5 seconds",
  paused: "paused",
};

export function Toolbar({ fleet, onFound }: { fleet: Fleet; onFound: () => void }) {
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = (event.target as Element).matches?.("input, textarea, select");
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      search.current?.focus();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <form
      class="toolbar"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onFound();
      }}
    >
      <Choice
        label="Group by"
        of={groupingsOf(fleet)}
        value={grouping.value}
        onChange={(group) => narrow({ group, in: undefined })}
      />
      <Choice
        label="Class"
        of={fleet.classes}
        value={classShown.value}
        onChange={(name) => choose({ class: name })}
      />
      <Choice
        label="Colour by"
        of={COLOURINGS}
        value={colouring.value}
        onChange={(colour) => choose({ colour })}
      />
      <Choice
        label="Show"
        of={STATES}
        value={stateFilter.value}
        onChange={(state) => narrow({ state: state === "all" ? undefined : state })}
      />
      <label>
        Search
        <input
          ref={search}
          type="search"
          name="q"
          value={text.value}
          placeholder="host name ( / )"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => narrow({ q: event.currentTarget.value || undefined })}
        />
      </label>
      <button
        type="button"
        aria-pressed={isTable.value}
        onClick={() => choose({ as: isTable.value ? undefined : "table" })}
      >
        Table
      </button>
      <span class={`following ${following.value}`}>{FOLLOWING[following.value]}</span>
    </form>
  );
}

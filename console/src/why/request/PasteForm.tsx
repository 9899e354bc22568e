// Takes a query, a pod, hardware intents or a Machine as they are.
import { useSignal } from "@preact/signals";
import { Refused } from "../../ui/Refused";
import { pasted } from "./paste";

interface PasteProps {
  classes: string[];
  onAsk: (query: string) => void;
}

export function PasteForm({ classes, onAsk }: PasteProps) {
  const text = useSignal("");
  const failed = useSignal<string | undefined>(undefined);
  const read = useSignal<string | undefined>(undefined);
  const take = () => {
    try {
      const found = pasted(text.value, classes);
      failed.value = undefined;
      read.value = found.words;
      onAsk(found.query);
    } catch (error) {
      failed.value = error instanceof Error ? error.message : String(error);
    }
  };
  return (
    <form
      class="paste"
      onSubmit={(event) => {
        event.preventDefault();
        take();
      }}
    >
      <label>
        a query, a pod, hardware intents or a Machine (YAML or JSON)
        <textarea
          rows={9}
          spellcheck={false}
          value={text.value}
          placeholder={"resources_VM=VCPU:50&resources_ACC=FPGA:2&same_subtree=_VM,_ACC"}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </label>
      <div class="actions">
        <button type="submit" class="main" disabled={text.value.trim() === ""}>
          Read and ask
        </button>
      </div>
      <div aria-live="polite">
        {failed.value && <Refused words={failed.value} />}
        {read.value && !failed.value && <p class="quiet">{read.value}</p>}
      </div>
    </form>
  );
}

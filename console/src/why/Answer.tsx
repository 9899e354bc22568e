// The answer: for the fleet as a funnel, and for one host constraint by constraint.
import { href } from "../app/address";
import { Name } from "../ui/Name";
import { many } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import { Words } from "../ui/Words";
import { namesIn, VERDICTS, type Explanation, type PlaceFindings } from "./explanation";
import { Funnel } from "./Funnel";
import { Findings } from "./Nearest";

export function Answer({ of }: { of: Explanation }) {
  return (
    <section class={`card answer-card ${of.verdict}`} aria-labelledby="answer-title">
      <h2 id="answer-title">
        {VERDICTS[of.verdict]}{" "}
        <small>
          {many(of.fitting, "host fits", "hosts fit")} of {of.total}
        </small>
      </h2>
      <p aria-live="polite">
        <Words of={of.summary} names={namesIn(of)} />
      </p>
      <Funnel of={of} />
    </section>
  );
}

interface HereProps {
  place: PlaceFindings | undefined;
  problem: string | undefined;
  onDrain: (host: string) => void;
  onAdd: (host: string) => void;
}

export function Here({ place, problem, onDrain, onAdd }: HereProps) {
  if (problem) return <Refused words={problem} />;
  if (!place) return null;
  return (
    <section class="card here" aria-labelledby="here-title">
      <h2 id="here-title">
        <a href={href(`/hosts/${place.uuid}`)}>
          <Name of={place.name ?? place.uuid} />
        </a>{" "}
        {place.fits ? "fits" : "does not fit"}
      </h2>
      <Findings of={place.findings} />
      <p class="actions">
        <button type="button" onClick={() => onDrain(place.uuid)}>
          What if it were drained?
        </button>
        <button type="button" onClick={() => onAdd(place.uuid)}>
          What if there were one more?
        </button>
      </p>
    </section>
  );
}

// What would help: relaxations, moves and additions, each to click and try.
import { useSignal } from "@preact/signals";
import { wordsOf } from "../app/api";
import { href } from "../app/address";
import { may } from "../app/me";
import { Confirm } from "../ui/Confirm";
import { Name, ShortId } from "../ui/Name";
import { amounts, many } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import { Words } from "../ui/Words";
import { namesIn, type Explanation, type MissingAmount, type MovePlan } from "./explanation";
import { move } from "./questions";

interface RemediesProps {
  of: Explanation;
  onTry: (query: string) => void;
  onAskMoves: () => void;
  onRelease: (consumers: string[]) => void;
  onAdd: (added: MissingAmount[]) => void;
  onMoved: () => void;
  areMovesAsked: boolean;
}

export function Remedies(props: RemediesProps) {
  const { of } = props;
  const names = namesIn(of);
  const nothing =
    of.relaxations.length + of.additions.length + of.emptied.length === 0 && !of.moves?.length;
  return (
    <section class="card remedies" aria-labelledby="remedies-title">
      <h2 id="remedies-title">What would help</h2>
      {nothing && <p class="quiet">Nothing was found that would.</p>}
      {of.relaxations.length > 0 && <h3>Ask for less</h3>}
      <ul class="choices">
        {of.relaxations.map((each) => (
          <li key={each.query}>
            <span>
              <Words of={each.words} names={names} />
              {each.vanishing.length > 0 && (
                <small> then also not asked for: <Words of={each.vanishing.join(", ")} names={names} /></small>
              )}
            </span>
            <button type="button" onClick={() => props.onTry(each.query)}>
              Try it
            </button>
          </li>
        ))}
      </ul>
      {(of.more_relaxations ?? 0) > 0 && (
        <p class="quiet">{many(of.more_relaxations!, "other")} would do as well.</p>
      )}
      <Moves {...props} />
      {of.additions.length > 0 && <h3>Add hardware</h3>}
      <ul class="choices">
        {of.additions.map((each) => (
          <li key={each.words}>
            <Words of={each.words} names={names} />
            <button
              type="button"
              aria-label={`Try it: ${each.words}`}
              onClick={() => props.onAdd(each.added)}
            >
              Try it
            </button>
          </li>
        ))}
      </ul>
      {of.emptied.length > 0 && (
        <p class="quiet">
          With nothing in use it would fit{" "}
          {of.emptied.slice(0, 8).map((host, at) => (
            <span key={host.uuid}>
              {at > 0 && ", "}
              <a href={href(`/hosts/${host.uuid}`)}>
                <Name of={host.name ?? host.uuid} />
              </a>
            </span>
          ))}
          {of.emptied.length > 8 && ` and ${of.emptied.length - 8} more`}.
        </p>
      )}
      {of.cut_short && <p class="quiet">Time was over before everything was looked at.</p>}
    </section>
  );
}

function Moves({ of, areMovesAsked, onAskMoves, onRelease, onMoved }: RemediesProps) {
  if (of.verdict !== "not_now" || !may("holders")) return null;
  if (!areMovesAsked) {
    return (
      <p class="actions">
        <button type="button" onClick={onAskMoves}>
          Whom to move?
        </button>
        <span class="quiet">looks for the fewest consumers that have to go elsewhere</span>
      </p>
    );
  }
  return (
    <>
      <h3>Whom to move</h3>
      {of.moves?.length === 0 && (
        <p class="quiet">No consumers were found whose moving would do.</p>
      )}
      <ul class="choices">
        {of.moves?.map((plan, at) => (
          <Plan key={at} plan={plan} onRelease={onRelease} onMoved={onMoved} />
        ))}
      </ul>
    </>
  );
}

interface PlanProps {
  plan: MovePlan;
  onRelease: (consumers: string[]) => void;
  onMoved: () => void;
}

function Plan({ plan, onRelease, onMoved }: PlanProps) {
  const failed = useSignal<string | undefined>(undefined);
  const hasPlaces = plan.moves.every((each) => each.to);
  const carryOut = async () => {
    try {
      await move(plan.moves);
      onMoved();
    } catch (error) {
      failed.value = wordsOf(error);
    }
  };
  return (
    <li class="plan">
      <div>
        <strong>
          <Name of={plan.host.name ?? plan.host.uuid} /> fits
        </strong>{" "}
        if {plan.moves.length === 1 ? "one leaves" : `${plan.moves.length} leave`}:
        <ul>
          {plan.moves.map((each) => (
            <li key={each.consumer}>
              <a href={href(`/holders/${each.consumer}`)}>
                <ShortId of={each.consumer} />
              </a>{" "}
              <small class="wrap">{amounts(each.resources)}</small> from{" "}
              <Name of={each.from.name ?? each.from.uuid} />{" "}
              {each.to ? (
                <>
                  to <Name of={each.to.name ?? each.to.uuid} />
                </>
              ) : (
                <em>and there is no place like it</em>
              )}
            </li>
          ))}
        </ul>
        {plan.swap && <small>Some have to leave before they can move.</small>}
        {failed.value && <Refused words={failed.value} />}
      </div>
      <span class="actions">
        <button type="button" onClick={() => onRelease(plan.moves.map((each) => each.consumer))}>
          Try it
        </button>
        {hasPlaces && may("claim") && may("release") && (
          <Confirm
            label="Move…"
            question="This writes the new places into the ledger. Whoever runs them has to move them."
            yes={`Move ${many(plan.moves.length, "consumer")}`}
            onYes={carryOut}
          />
        )}
      </span>
    </li>
  );
}

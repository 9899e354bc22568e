// Decisions: what was asked, what was taken and passed over, and with which scores.
import { href } from "../app/address";
import { Name, ShortId } from "../ui/Name";
import { amounts, many } from "../ui/numbers";
import { Time } from "../ui/Time";
import { Words } from "../ui/Words";
import { placesOf, scoreParts, type Candidate, type Decision } from "./decision";

export function DecisionList({ of }: { of: Decision[] }) {
  return (
    <ol class="decisions">
      {of.map((each) => (
        <li key={each.id}>
          <h3>
            <span class={`tag ${each.outcome === "claimed" ? "good" : "bad"}`}>{each.outcome}</span>{" "}
            <a href={href(`/holders/${each.consumer}`)}>
              <ShortId of={each.consumer} />
            </a>{" "}
            <small>
              no. {each.id}, <Time at={each.at} />
            </small>
          </h3>
          {each.query && (
            <p class="query">
              <code class="wrap">{each.query}</code>{" "}
              {isRequest(each.query) && <a href={href("/why", { query: each.query })}>ask again</a>}
            </p>
          )}
          {each.words && (
            <p>
              <Words of={each.words} names={placesOf(each)} />
            </p>
          )}
          {each.chosen && <Candidates of={[each.chosen]} label="took" />}
          {each.passed_over.length > 0 && (
            <details>
              <summary>{many(each.passed_over.length, "candidate")} passed over</summary>
              <Candidates of={each.passed_over} label="over" />
            </details>
          )}
        </li>
      ))}
    </ol>
  );
}

/** Claims of devices and machines were asked for in other words than those of requests. */
function isRequest(query: string): boolean {
  return [...new URLSearchParams(query).keys()].some((key) => key.startsWith("resources"));
}

function Candidates({ of, label }: { of: Candidate[]; label: string }) {
  return (
    <ul class="candidates">
      {of.map((each) => (
        <li key={each.position}>
          <span class="quiet">
            {label} #{each.position}
          </span>
          <span>
            {Object.entries(each.allocations).map(([provider, held]) => (
              <span key={provider} class="held">
                <a href={href(`/hosts/${provider}`)}>
                  <Name of={held.name ?? provider} />
                </a>{" "}
                <span class="wrap">{amounts(held.resources)}</span>
              </span>
            ))}
            {each.scores && <Scores of={each.scores} />}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Scores({ of }: { of: Record<string, unknown> }) {
  return (
    <small>
      {scoreParts(of)
        .map(([name, value]) => `${name} ${Number(value.toFixed(3))}`)
        .join(", ")}
    </small>
  );
}

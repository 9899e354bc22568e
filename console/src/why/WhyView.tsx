// Why, or why not: a request, the answer as a funnel and on the map, what would help, what if, and the claim.
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { params, setParams } from "../app/address";
import { may } from "../app/me";
import { fleet, follow } from "../map/live";
import { isolated } from "../ui/bidi";
import { useLoaded } from "../ui/loading";
import { NoHosts } from "../ui/NoHosts";
import { Refused } from "../ui/Refused";
import { useTitle } from "../ui/title";
import { Answer, Here } from "./Answer";
import { areMovesAsked, claimedHere, host, query, supposedText, turn } from "./asked";
import { Asking } from "./request/Asking";
import { Beginning } from "./Beginning";
import { ClaimPart } from "./ClaimPart";
import { Nearest } from "./Nearest";
import { explain, hostVerdicts, whatIf, type Supposed } from "./questions";
import { Remedies } from "./Remedies";
import { requestOf } from "./request/request";
import { isNothing, supposedOf, supposedParams, withMore } from "./supposing";
import { VerdictMap } from "./VerdictMap";
import { learnVocabulary } from "./request/vocabulary";
import { WhatIfPart } from "./WhatIfPart";

const MOST_SUGGESTED = 1000;

export function WhyView() {
  useEffect(follow, []);
  useEffect(learnVocabulary, []);
  const cursor = useSignal<string | undefined>(undefined);
  const verdictTurn = useSignal(0);
  const answer = useLoaded((signal) => {
    void turn.value;
    return query.value
      ? explain({ query: query.value, moves: areMovesAsked.value }, signal)
      : undefined;
  });
  const here = useLoaded((signal) => {
    void turn.value;
    return query.value && host.value
      ? explain({ query: query.value, host: host.value }, signal)
      : undefined;
  });
  const verdicts = useLoaded((signal) => {
    void turn.value;
    void verdictTurn.value;
    return query.value && may("map") ? hostVerdicts(query.value, signal) : undefined;
  });
  const supposing = useLoaded((signal) => {
    void turn.value;
    const supposed = JSON.parse(supposedText.value) as Supposed;
    return query.value && !isNothing(supposed) ? whatIf(query.value, supposed, signal) : undefined;
  });
  useSignalEffect(() => {
    if (host.value) cursor.value = host.value;
  });

  const ask = (next: string) => setParams({ query: next, moves: undefined }, true);
  const look = (uuid: string | undefined) => setParams({ host: uuid }, true);
  const supposed = supposedOf(params.value);
  const suppose = (next: Supposed) => setParams(supposedParams(next));
  const found = answer.value.value;
  useTitle(query.value && askedFor(query.value, host.value && nameOf(host.value)));
  const answered = useRef<HTMLDivElement>(null);
  // In a narrow window the form fills it, and the answer is further down: who asked is brought there.
  useEffect(() => {
    if (!found || !answered.current) return;
    const { top, bottom } = answered.current.getBoundingClientRect();
    if (top > innerHeight || bottom < 0) answered.current.scrollIntoView();
  }, [found && query.value]);
  if (fleet.value?.size === 0)
    return (
      <div class="reading">
        <h1>Why, or why not</h1>
        <NoHosts />
      </div>
    );
  return (
    <div class="why">
      <h1>Why, or why not</h1>
      <KnownHosts />
      <div class="why-parts">
        <div class="column ask">
          <Asking
            onAsk={ask}
            about={host.value && nameOf(host.value)}
            onAnywhere={() => look(undefined)}
          />
          <WhatIfPart supposed={supposed} answer={supposing} onChange={suppose} nameOf={nameOf} />
        </div>
        <div class="column answer" ref={answered} aria-busy={answer.value.busy}>
          {answer.value.problem && <Refused words={answer.value.problem} />}
          {!query.value && <Beginning onAsk={ask} />}
          {host.value && query.value && (
            <Here
              place={here.value.value?.nearest[0]}
              problem={here.value.problem}
              onDrain={(name) =>
                suppose({
                  ...supposed,
                  drain: [...new Set([...supposed.drain, name])],
                })
              }
              onAdd={(name) =>
                suppose({
                  ...supposed,
                  add: [...supposed.add, { like: name, times: 1 }],
                })
              }
            />
          )}
          {found && <Answer of={found} />}
          {found && (found.verdict === "fits" || claimedHere.value) && (
            <ClaimPart
              query={query.value}
              fits={found.verdict === "fits"}
              onChanged={() => turn.value++}
            />
          )}
        </div>
        <div class="column help-column">
          {found && found.verdict !== "fits" && (
            <Remedies
              of={found}
              onTry={ask}
              onAskMoves={() => setParams({ moves: "1" })}
              onRelease={(consumers) =>
                suppose({
                  ...supposed,
                  release: [...new Set([...supposed.release, ...consumers])],
                })
              }
              onAdd={(added) => suppose(withMore(supposed, added))}
              onMoved={() => turn.value++}
              areMovesAsked={areMovesAsked.value}
            />
          )}
          {found && found.nearest.length > 0 && (
            <section class="card" aria-labelledby="nearest-title">
              <h2 id="nearest-title">Nearest misses</h2>
              <Nearest places={found.nearest} onLook={look} />
            </section>
          )}
        </div>
        <div class="column map-column">
          {query.value && may("map") && (
            <VerdictMap
              verdicts={verdicts}
              cursor={cursor}
              onOpen={look}
              onOld={() => verdictTurn.value++}
            />
          )}
        </div>
      </div>
    </div>
  );
}

/** A request as the title of a tab: its amounts, and the host that is asked about. */
function askedFor(text: string, about: string): string {
  const amounts = requestOf(text).groups.flatMap((group) =>
    group.amounts.map((each) => `${each.class}:${each.amount}`),
  );
  return `Why ${amounts.join(" ") || text}${about && ` on ${isolated(about)}`}`;
}

/** Names of hosts to choose from; of a large fleet the first, the others can be typed. */
function KnownHosts() {
  const names = fleet.value?.names.slice(0, MOST_SUGGESTED) ?? [];
  return (
    <datalist id="known-hosts">
      {names.map((each, at) => (
        <option key={at} value={each} />
      ))}
    </datalist>
  );
}

function nameOf(key: string): string {
  const known = fleet.value;
  const at = known?.byUuid.get(key);
  return at === undefined ? key : known!.names[at]!;
}

// Intents: deployment intent groups, and for one of them candidate clusters, the pick and why.
import { get } from "../app/api";
import { href } from "../app/address";
import type { ViewProps } from "../app/views";
import { useLoaded } from "../ui/loading";
import { Name } from "../ui/Name";
import { duration, many } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import { useTitle } from "../ui/title";
import { Words } from "../ui/Words";
import { Diff } from "./Diff";
import {
  appsIn,
  clustersIn,
  listGroups,
  pathOf,
  reasons,
  type GroupName,
  type Placement,
  type Plan,
} from "./intent";

export function IntentsView({ rest }: ViewProps) {
  const [project, app, version, group] = rest;
  if (project && app && version && group) return <Group of={{ project, app, version, group }} />;
  return <Listing />;
}

function Listing() {
  const loaded = useLoaded(listGroups);
  const { value, problem } = loaded.value;
  return (
    <div class="reading">
      <h1>Intents</h1>
      {problem && <Refused words={problem} />}
      {value?.length === 0 && <p class="quiet">There is no deployment intent group.</p>}
      {value && value.length > 0 && (
        <section class="card">
          <table>
            <thead>
              <tr>
                <th scope="col">group</th>
                <th scope="col">composite app</th>
                <th scope="col">version</th>
                <th scope="col">project</th>
                <th scope="col">state</th>
                <th scope="col" class="number">
                  revision
                </th>
              </tr>
            </thead>
            <tbody>
              {value.map((each) => (
                <tr key={pathOf(each)}>
                  <th scope="row">
                    <a href={groupHref(each)}>
                      <Name of={each.group} />
                    </a>
                  </th>
                  <td>
                    <Name of={each.app} />
                  </td>
                  <td>
                    <Name of={each.version} />
                  </td>
                  <td>
                    <Name of={each.project} />
                  </td>
                  <td>{each.state ?? "Created"}</td>
                  <td class="number">{each.revision ?? "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

function groupHref({ project, app, version, group }: GroupName): string {
  return href(`/intents/${[project, app, version, group].map(encodeURIComponent).join("/")}`);
}

interface Status {
  status: string;
  readyStatus?: string;
}

function Group({ of }: { of: GroupName }) {
  const planned = useLoaded((signal) => get<Plan>(`${pathOf(of)}/plan`, { signal }));
  const status = useLoaded((signal) => get<Status>(`${pathOf(of)}/status`, { signal }));
  const { value: plan, problem } = planned.value;
  const state = status.value.value;
  useTitle(of.group);
  return (
    <div class="reading">
      <h1>
        <Name of={of.group} />{" "}
        {state && (
          <span class="tag">{[state.status, state.readyStatus].filter(Boolean).join(", ")}</span>
        )}
      </h1>
      <p class="quiet">
        <Name of={of.project} /> / <Name of={of.app} /> / <Name of={of.version} />
      </p>
      {problem && <Refused words={problem} />}
      {!plan && !problem && <p class="quiet">Planning; nothing is claimed.</p>}
      {plan && <Planned plan={plan} />}
    </div>
  );
}

function Planned({ plan }: { plan: Plan }) {
  return (
    <>
      <section class={`card answer-card ${plan.feasible ? "fits" : "never"}`}>
        <h2>
          {plan.feasible ? `Picked, with a score of ${plan.pick?.score ?? 0}` : "No pick"}{" "}
          <small>
            {many(plan.fleet.clusters, "cluster")}, the oldest as told{" "}
            {duration(plan.fleet.oldestSeconds)} ago
          </small>
        </h2>
        {plan.why && (
          <p>
            <Words of={plan.why} names={[...appsIn(plan), ...clustersIn(plan)]} />
          </p>
        )}
        {plan.pick && !plan.pick.isProven && (
          <p class="quiet">Time was over before a better one could be ruled out.</p>
        )}
        {plan.fleet.notReady.map((each) => (
          <p key={each.cluster}>
            <Name of={each.cluster} /> is {each.state}:{" "}
            <Words of={each.why} names={[each.cluster]} />
          </p>
        ))}
      </section>
      <Matrix plan={plan} />
      {plan.placements?.map((each) => (
        <Placed key={`${each.app} ${each.cluster}`} of={each} />
      ))}
    </>
  );
}

/** Apps by clusters: picked, possible, or why not. */
function Matrix({ plan }: { plan: Plan }) {
  const apps = appsIn(plan);
  return (
    <section class="card scroll" aria-labelledby="matrix-title" tabIndex={0}>
      <h2 id="matrix-title">Candidate clusters</h2>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">cluster</th>
            {apps.map((app) => (
              <th key={app} scope="col">
                <Name of={app} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {clustersIn(plan).map((cluster) => (
            <tr key={cluster}>
              <th scope="row">
                <Name of={cluster} />
              </th>
              {apps.map((app) => (
                <Cell key={app} plan={plan} app={app} cluster={cluster} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Cell({ plan, app, cluster }: { plan: Plan; app: string; cluster: string }) {
  const picked = plan.pick?.apps[app]?.find((each) => each.cluster === cluster);
  const why = reasons(plan, app, cluster);
  const isOut = why.some((each) => each.app === app);
  const word = picked ? "picked" : isOut ? "no" : why.length > 0 ? "not with others" : "possible";
  const tone = picked ? "good" : isOut ? "bad" : why.length > 0 ? "wait" : "";
  return (
    <td>
      <span class={`tag ${tone}`}>{word}</span> {picked && <small>score {picked.score}</small>}
      {why.map((each, at) => (
        <div key={at} class="wrap">
          <small>
            <Words
              of={`${each.controller}: ${each.words}`}
              names={[app, cluster, each.controller]}
            />
          </small>
        </div>
      ))}
    </td>
  );
}

function Placed({ of }: { of: Placement }) {
  return (
    <section class="card">
      <h2>
        <Name of={of.app} /> on <Name of={of.cluster} />
      </h2>
      <ul>
        {of.workloads.map((each) => (
          <li key={`${each.kind} ${each.name}`}>
            {each.kind} <Name of={each.name} /> on{" "}
            {Object.entries(each.nodes).map(([node, times]) => (
              <span key={node}>
                <Name of={node} /> ×{times}{" "}
              </span>
            ))}
            <small>{each.qosClass}</small>
          </li>
        ))}
        {of.options.map((each) => (
          <li key={each.requirement}>
            {each.granted ? "with" : "without"} <Name of={each.requirement} />{" "}
            <small>weight {each.weight}</small>
          </li>
        ))}
      </ul>
      {of.diff && (
        <details>
          <summary>How its objects are edited</summary>
          <Diff text={of.diff} />
        </details>
      )}
    </section>
  );
}

// One holder: its owner, every unit it has and where, why it is there, and giving it back.
import { useSignal } from "@preact/signals";
import { get, send, wordsOf } from "../app/api";
import { go, href } from "../app/address";
import { may } from "../app/me";
import { Loading, NotLoaded } from "../ui/Loading";
import { Confirm } from "../ui/Confirm";
import { useLoaded } from "../ui/loading";
import { PodName } from "../ui/HolderName";
import { Name } from "../ui/Name";
import { amounts } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import { Time } from "../ui/Time";
import { useTitle } from "../ui/title";
import type { Decision } from "./decision";
import { DecisionList } from "./DecisionList";
import type { Holder } from "./holder";

export function HolderPart({ uuid }: { uuid: string }) {
  const failed = useSignal<string | undefined>(undefined);
  const loaded = useLoaded((signal) =>
    get<Holder>(`/dovetail/v1/consumers/${encodeURIComponent(uuid)}`, { signal }),
  );
  const history = useLoaded((signal) =>
    get<{ decisions: Decision[] }>(
      `/dovetail/v1/decisions?limit=10&consumer=${encodeURIComponent(uuid)}`,
      { signal },
    ),
  );
  const release = async () => {
    try {
      await send("DELETE", `/allocations/${uuid}`);
      go(href("/holders"));
    } catch (error) {
      failed.value = wordsOf(error);
    }
  };
  const { value: holder, problem } = loaded.value;
  useTitle(holder?.pod ? `${holder.project}/${holder.pod}` : `Holder ${uuid}`);
  if (problem) return <NotLoaded title="Holder" words={problem} />;
  if (!holder) return <Loading title="Holder" what="the holder" />;
  return (
    <div class="reading">
      <h1>
        Holder <span class="id">{holder.uuid}</span>
      </h1>
      <dl class="facts">
        {holder.pod && (
          <>
            <dt>pod</dt>
            <dd>
              <PodName of={holder.pod} namespace={holder.project} />
            </dd>
          </>
        )}
        <dt>type</dt>
        <dd>{holder.type ?? "–"}</dd>
        <dt>project</dt>
        <dd>
          <a href={href("/holders", { project: holder.project })}>
            <Name of={holder.project} />
          </a>
        </dd>
        <dt>user</dt>
        <dd>
          <Name of={holder.user} />
        </dd>
        <dt>holds since</dt>
        <dd>
          <Time at={holder.since} />
        </dd>
      </dl>
      <section class="card">
        <h2>What it holds</h2>
        {holder.holds.length === 0 && <p class="quiet">Nothing.</p>}
        <table>
          <thead>
            <tr>
              <th scope="col">provider</th>
              <th scope="col">units</th>
              <th scope="col">host</th>
            </tr>
          </thead>
          <tbody>
            {holder.holds.map((each) => (
              <tr key={each.provider}>
                <th scope="row">
                  <Name of={each.name ?? each.provider} />
                </th>
                <td class="wrap">{amounts(each.resources)}</td>
                <td>
                  <a href={href(`/hosts/${each.host_uuid}`)}>
                    <Name of={each.host ?? each.host_uuid} />
                  </a>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {failed.value && <Refused words={failed.value} />}
        {may("release") && holder.holds.length > 0 && (
          <p class="actions">
            <Confirm
              label="Release…"
              question="Everything it holds is free for others at once."
              yes="Release"
              onYes={release}
            />
          </p>
        )}
      </section>
      <section class="card">
        <h2>Why it is there</h2>
        {history.value.value?.decisions.length === 0 && (
          <p class="quiet">No decision about it is kept.</p>
        )}
        <DecisionList of={history.value.value?.decisions ?? []} />
      </section>
    </div>
  );
}

// Is the ledger sound? Findings, and before anything is healed what the heal would do.
import { useSignal } from "@preact/signals";
import { get, send, wordsOf } from "../app/api";
import { href } from "../app/address";
import { may } from "../app/me";
import { Confirm } from "../ui/Confirm";
import { useLoaded } from "../ui/loading";
import { Name, ShortId } from "../ui/Name";
import { count, many } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import { Words } from "../ui/Words";

interface Fault {
  kind: string;
  words: string;
  healable: boolean;
  provider: string | null;
  provider_uuid: string | null;
  resource_class: string | null;
  consumer: string | null;
}

interface Audit {
  checked: Record<string, number>;
  faults: Fault[];
  healed?: Fault[];
}

export function AuditView() {
  const turn = useSignal(0);
  const healed = useSignal<Fault[] | undefined>(undefined);
  const failed = useSignal<string | undefined>(undefined);
  const heal = async () => {
    try {
      failed.value = undefined;
      healed.value = (await send<Audit>("POST", "/dovetail/v1/audit"))?.healed ?? [];
      turn.value++;
    } catch (error) {
      failed.value = wordsOf(error);
    }
  };
  const loaded = useLoaded((signal) => {
    void turn.value;
    return get<Audit>("/dovetail/v1/audit", { signal });
  });
  const { value: audit, problem } = loaded.value;
  const healable = audit?.faults.filter((each) => each.healable) ?? [];
  const others = audit?.faults.filter((each) => !each.healable) ?? [];
  return (
    <div class="reading">
      <h1>Audit</h1>
      {(problem ?? failed.value) && <Refused words={problem ?? failed.value!} />}
      {!audit && !problem && <p class="quiet">Looking through the ledger.</p>}
      {audit && (
        <p>
          Looked at{" "}
          {Object.entries(audit.checked)
            .map(([what, of]) => `${count(of)} ${what}`)
            .join(", ")}
          :{" "}
          <strong>
            {audit.faults.length === 0
              ? "nothing is wrong."
              : `${many(audit.faults.length, "fault")}.`}
          </strong>
        </p>
      )}
      {healed.value && (
        <section class="card" aria-live="polite">
          <h2>Healed</h2>
          {healed.value.length === 0 ? (
            <p class="quiet">There was nothing to heal.</p>
          ) : (
            <Faults of={healed.value} />
          )}
        </section>
      )}
      {healable.length > 0 && (
        <section class="card" aria-labelledby="dry-title">
          <h2 id="dry-title">Dry run: what a heal would mend</h2>
          <Faults of={healable} />
          {may("heal") ? (
            <p class="actions">
              <Confirm
                label={`Heal ${many(healable.length, "fault")}…`}
                main
                question="This writes to the ledger what is listed above, no more."
                yes="Heal"
                onYes={heal}
              />
            </p>
          ) : (
            <p class="quiet">You may look, but not heal.</p>
          )}
        </section>
      )}
      {others.length > 0 && (
        <section class="card" aria-labelledby="others-title">
          <h2 id="others-title">What somebody has to look at</h2>
          <Faults of={others} />
        </section>
      )}
    </div>
  );
}

function Faults({ of }: { of: Fault[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">kind</th>
          <th scope="col">what is wrong</th>
          <th scope="col">where</th>
        </tr>
      </thead>
      <tbody>
        {of.map((each, at) => (
          <tr key={at}>
            <td>
              <code>{each.kind}</code>
            </td>
            <td class="wrap">
              <Words of={each.words} names={[each.provider]} />
            </td>
            <td>
              {each.provider_uuid && (
                <a href={href(`/hosts/${each.provider_uuid}`)}>
                  <Name of={each.provider ?? each.provider_uuid} />
                </a>
              )}{" "}
              {each.consumer && (
                <a href={href(`/holders/${each.consumer}`)}>
                  <ShortId of={each.consumer} />
                </a>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// Claim what fits, with the right to, and give it back.
import { useSignal } from "@preact/signals";
import { Problem, wordsOf } from "../app/api";
import { href } from "../app/address";
import { may } from "../app/me";
import { Name, ShortId } from "../ui/Name";
import { amounts } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import { claimedHere, lastClaim } from "./asked";
import { claim, release } from "./questions";

interface ClaimProps {
  query: string;
  fits: boolean;
  onChanged: () => void;
}

export function ClaimPart({ query, fits, onChanged }: ClaimProps) {
  const failed = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);
  const type = useSignal("");
  const attempt = async (what: () => Promise<void>) => {
    busy.value = true;
    failed.value = undefined;
    try {
      await what();
      onChanged();
    } catch (error) {
      failed.value =
        error instanceof Problem && error.status === 409
          ? `Refused: ${error.message}`
          : wordsOf(error);
    }
    busy.value = false;
  };
  const take = () =>
    attempt(async () => {
      const kind = type.value.trim();
      const claimed = await claim({ query, ...(kind ? { consumer_type: kind } : {}) });
      lastClaim.value = { query, claimed };
    });
  const giveBack = (consumer: string) =>
    attempt(async () => {
      await release(consumer);
      lastClaim.value = undefined;
    });
  return (
    <section class="card claim" aria-labelledby="claim-title">
      <h2 id="claim-title">Claim it</h2>
      {!fits ? (
        <p class="quiet">Nothing more of it fits now.</p>
      ) : may("claim") ? (
        <form
          class="actions"
          onSubmit={(event) => {
            event.preventDefault();
            void take();
          }}
        >
          <button type="submit" class="main" disabled={busy.value}>
            Claim the best place
          </button>
          <label class="line">
            type
            <input
              name="consumer_type"
              value={type.value}
              placeholder="INSTANCE"
              pattern="[A-Z0-9_]{1,255}"
              title="Capital letters, digits and _"
              size={14}
              onInput={(event) => (type.value = event.currentTarget.value)}
            />
          </label>
        </form>
      ) : (
        <p class="quiet">You may look, but not claim.</p>
      )}
      <div aria-live="polite">
        {failed.value && <Refused words={failed.value} />}
        {claimedHere.value && (
          <div class="noted">
            <p>
              Claimed for consumer{" "}
              <a href={href(`/holders/${claimedHere.value.consumer}`)}>
                <ShortId of={claimedHere.value.consumer} />
              </a>
              :
            </p>
            <ul>
              {Object.entries(claimedHere.value.allocations).map(([provider, of]) => (
                <li key={provider}>
                  <a href={href(`/hosts/${provider}`)}>
                    <Name of={of.name ?? provider} />
                  </a>{" "}
                  <span class="wrap">{amounts(of.resources)}</span>
                </li>
              ))}
            </ul>
            {may("release") && (
              <p class="actions">
                <button
                  type="button"
                  disabled={busy.value}
                  onClick={() => void giveBack(claimedHere.value!.consumer)}
                >
                  Give it back
                </button>
              </p>
            )}
          </div>
        )}
      </div>
    </section>
  );
}

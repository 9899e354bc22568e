// Hosts that come nearest: what of the request each meets, and by how much it falls short.
import { href } from "../app/address";
import { Name } from "../ui/Name";
import { Words } from "../ui/Words";
import { findingWord, type Finding, type PlaceFindings } from "./explanation";

interface NearestProps {
  places: PlaceFindings[];
  onLook?: (uuid: string) => void;
}

export function Nearest({ places, onLook }: NearestProps) {
  return (
    <ol class="nearest">
      {places.map((place) => (
        <li key={place.uuid}>
          <h3>
            <a href={href(`/hosts/${place.uuid}`)}>
              <Name of={place.name ?? place.uuid} />
            </a>
            <span class={`tag ${place.fits ? "fits" : "never"}`}>
              {place.fits ? "fits" : "does not fit"}
            </span>
            {onLook && (
              <button type="button" class="plain" onClick={() => onLook(place.uuid)}>
                show on the map
              </button>
            )}
          </h3>
          <Findings of={place.findings} />
        </li>
      ))}
    </ol>
  );
}

const WORDS = { ok: "ok", short: "short", never: "never" };

export function Findings({ of }: { of: Finding[] }) {
  return (
    <ul class="findings">
      {of.map((finding, at) => {
        const word = findingWord(finding);
        return (
          <li key={at} class={word}>
            <span class={`tag ${word === "ok" ? "good" : word === "short" ? "wait" : "bad"}`}>
              {WORDS[word]}
            </span>
            <Words of={finding.words} names={[finding.provider, finding.constraint]} />
            {(finding.short ?? 0) > 0 && <Shortfall of={finding} />}
          </li>
        );
      })}
    </ul>
  );
}

/** Of what is wanted, how much is free; the words beside it have the numbers. */
function Shortfall({ of }: { of: Finding }) {
  const wanted = of.wanted || 1;
  const there = (100 * (wanted - of.short!)) / wanted;
  return (
    <svg class="shortfall" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="there" width={there} height="8" />
      <rect class="short" x={there} width={100 - there} height="8" />
    </svg>
  );
}

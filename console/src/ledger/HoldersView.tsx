// Who holds what: consumers with age, owner and type, or one of them with all its units.
import { get } from "../app/api";
import { href, params, setParams } from "../app/address";
import type { ViewProps } from "../app/views";
import { useFields } from "../ui/fields";
import { useLoaded } from "../ui/loading";
import { HolderName } from "../ui/HolderName";
import { Name } from "../ui/Name";
import { amounts } from "../ui/numbers";
import { Refused } from "../ui/Refused";
import { Time } from "../ui/Time";
import { useTitle } from "../ui/title";
import type { Holder, HoldersPage } from "./holder";
import { HolderPart } from "./HolderPart";

const PAGE = 100;
const FILTERS = ["q", "type", "project"] as const;

export function HoldersView({ rest }: ViewProps) {
  return rest[0] ? <HolderPart uuid={rest[0]} /> : <Listing />;
}

function Listing() {
  const loaded = useLoaded((signal) => {
    const asked = new URLSearchParams({ limit: String(PAGE) });
    for (const key of [...FILTERS, "after"]) {
      const value = params.value.get(key);
      if (value) asked.set(key, value);
    }
    return get<HoldersPage>(`/dovetail/v1/consumers?${asked}`, { signal });
  });
  const { value, problem } = loaded.value;
  const project = params.value.get("project");
  useTitle(project ? `Holders of ${project}` : undefined);
  const isFiltered = FILTERS.some((key) => params.value.get(key));
  const kept = Object.fromEntries(FILTERS.map((key) => [key, params.value.get(key) ?? undefined]));
  return (
    <div class="listing">
      <h1>Holders</h1>
      <Search />
      {problem && <Refused words={problem} />}
      {value && value.consumers.length === 0 && (
        <p class="quiet">
          {isFiltered ? "Nobody holds anything like that." : "Nobody holds anything. Claims make holders."}
        </p>
      )}
      {value && value.consumers.length > 0 && <HolderTable of={value.consumers} />}
      <p class="pager">
        {params.value.get("after") && <a href={href("/holders", kept)}>First page</a>}
        {value?.next && (
          <a href={href("/holders", { ...kept, after: String(value.next) })}>Next page</a>
        )}
      </p>
    </div>
  );
}

function Search() {
  const form = useFields(FILTERS);
  return (
    <form
      ref={form}
      class="toolbar"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const data = new FormData(event.currentTarget);
        const changes = Object.fromEntries(
          FILTERS.map((key) => [key, String(data.get(key) ?? "").trim() || undefined]),
        );
        setParams({ ...changes, after: undefined }, true);
      }}
    >
      <label>
        Search
        <input type="search" name="q" placeholder="UUID, project or user" />
      </label>
      <label>
        Type
        <input name="type" placeholder="INSTANCE" size={14} />
      </label>
      <label>
        Project
        <input name="project" size={18} />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function HolderTable({ of }: { of: Holder[] }) {
  return (
    <div class="card scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">holder</th>
            <th scope="col">type</th>
            <th scope="col">project</th>
            <th scope="col">user</th>
            <th scope="col">since</th>
            <th scope="col">holds</th>
            <th scope="col">on</th>
          </tr>
        </thead>
        <tbody>
          {of.map((each) => (
            <tr key={each.uuid}>
              <th scope="row">
                <HolderName uuid={each.uuid} pod={each.pod} namespace={each.project} />
              </th>
              <td>{each.type ?? "–"}</td>
              <td>
                <Name of={each.project} />
              </td>
              <td>
                <Name of={each.user} />
              </td>
              <td>
                <Time at={each.since} />
              </td>
              <td class="wrap">{amounts(summed(each))}</td>
              <td>
                <Hosts of={each} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Hosts({ of }: { of: Holder }) {
  const hosts = new Map(of.holds.map((each) => [each.host_uuid, each.host]));
  return (
    <>
      {[...hosts].slice(0, 4).map(([uuid, name]) => (
        <span key={uuid} class="held">
          <a href={href(`/hosts/${uuid}`)}>
            <Name of={name ?? uuid} />
          </a>{" "}
        </span>
      ))}
      {hosts.size > 4 && <small>and {hosts.size - 4} more</small>}
    </>
  );
}

export function summed(of: Holder): Record<string, number> {
  const found: Record<string, number> = {};
  for (const held of of.holds) {
    for (const [name, amount] of Object.entries(held.resources))
      found[name] = (found[name] ?? 0) + amount;
  }
  return found;
}

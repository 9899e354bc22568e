// The funnel: how many hosts are left after each constraint, as bars that get shorter.
import { count } from "../ui/numbers";
import { Words } from "../ui/Words";
import { namesIn, type Explanation } from "./explanation";

export function Funnel({ of }: { of: Explanation }) {
  const stages = [{ words: `${of.of} in the fleet`, left: of.total }, ...of.funnel];
  const lost = stages.findIndex((stage) => stage.left === 0);
  return (
    <table class="funnel">
      <caption class="sr">Hosts left after each constraint</caption>
      <thead>
        <tr>
          <th scope="col" class="number">
            left
          </th>
          <th scope="col" class="sr">
            as a bar
          </th>
          <th scope="col">after</th>
        </tr>
      </thead>
      <tbody>
        {stages.map((stage, at) => (
          <tr key={at} class={at === lost ? "lost" : undefined}>
            <td class="number">{count(stage.left)}</td>
            <td aria-hidden="true">
              <svg viewBox="0 0 100 10" preserveAspectRatio="none">
                <rect
                  x={50 - share(stage.left, of.total) / 2}
                  width={share(stage.left, of.total)}
                  height="10"
                />
              </svg>
            </td>
            <th scope="row" class="wrap">
              <Words of={stage.words} names={namesIn(of)} />
              {at === lost && <span class="tag bad">none left</span>}
            </th>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** In percent; a single host of many can still be seen. */
function share(left: number, total: number): number {
  return left === 0 || total === 0 ? 0 : Math.max(0.8, (100 * left) / total);
}

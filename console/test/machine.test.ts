import { describe, expect, it } from "vitest";
import { untold, type MachineGroup } from "../src/sold/machine";

function group(waiting: number | null, queued: string[] | null): MachineGroup {
  const stock = { max: 1, reserved: 0, used: 1 };
  return {
    cluster: "",
    name: "lab",
    types: [{ type: "large", ...stock, waiting }],
    holders: [],
    queue:
      queued &&
      queued.map((type, at) => ({
        position: at + 1,
        consumer: String(at),
        type,
        project: "team",
        pod: `p${at}`,
        since: null,
        reason: null,
        message: "",
      })),
    told_at: null,
  };
}

describe("a queue", () => {
  it("says how many more wait than are told", () => {
    expect(untold(group(5, ["large", "large"]))).toBe(3);
    expect(untold(group(2, ["large", "large", "gone"]))).toBe(0);
    expect(untold(group(null, null))).toBe(0);
  });
});

import { describe, expect, it } from "vitest";
import { shareOf, spanOf, stretchesOf, ticksOf } from "../src/sold/span";

const NOW = Date.parse("2026-01-01T12:00:00Z");

describe("a timeline", () => {
  it("has now in it, whatever holds there are", () => {
    for (const holds of [
      [],
      [{ from: "2026-01-02T00:00:00Z", until: null }],
      [{ from: null, until: "2025-01-01T00:00:00Z" }],
    ]) {
      const span = spanOf(holds, NOW);
      expect(shareOf(NOW, span)).toBeGreaterThan(0);
      expect(shareOf(NOW, span)).toBeLessThan(1);
    }
  });

  it("draws what has no end to the edge", () => {
    const hold = { from: "2026-01-01T06:00:00Z", until: null };
    expect(stretchesOf(hold, NOW, spanOf([hold], NOW))).toMatchObject([{ kind: "held", to: 1 }]);
  });

  it("tells what was held from what is lent, with now between them", () => {
    const hold = { from: "2026-01-01T06:00:00Z", until: "2026-01-01T18:00:00Z" };
    const span = spanOf([hold], NOW);
    const here = shareOf(NOW, span);
    expect(stretchesOf(hold, NOW, span)).toMatchObject([
      { kind: "held", to: here },
      { kind: "lent", from: here, to: shareOf(Date.parse(hold.until), span) },
    ]);
  });

  it("goes on to now if a unit is held though its time is over", () => {
    const hold = { from: "2026-01-01T06:00:00Z", until: "2026-01-01T08:00:00Z" };
    const span = spanOf([hold], NOW);
    const end = shareOf(Date.parse(hold.until), span);
    expect(stretchesOf(hold, NOW, span)).toMatchObject([
      { kind: "held", to: end },
      { kind: "overdue", from: end, to: shareOf(NOW, span) },
    ]);
  });

  it("has few round ticks", () => {
    const ticks = ticksOf({ start: NOW, end: NOW + 20 * 86_400_000 });
    expect(ticks.length).toBeLessThanOrEqual(8);
    expect(ticks.every((each) => each % 3_600_000 === 0)).toBe(true);
  });
});

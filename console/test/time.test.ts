import { describe, expect, it } from "vitest";
import { ago } from "../src/ui/numbers";
import { clock, moment, stretch } from "../src/ui/Time";

describe("a time", () => {
  it("says its zone, whatever offset it came with", () => {
    expect(moment("2026-11-18T15:23:59.5+01:00")).toBe("2026-11-18 14:23 UTC");
    expect(clock(Date.UTC(2026, 10, 18, 14, 23))).toBe("14:23 UTC");
    expect(moment("soon")).toBe("soon");
  });

  it("may be a stretch, open at either end", () => {
    const [from, until] = ["2026-11-18T09:00:00Z", "2026-11-18T17:00:00Z"];
    expect(stretch(from, until)).toBe("2026-11-18 09:00 – 2026-11-18 17:00 UTC");
    expect(stretch(from, null)).toBe("2026-11-18 09:00 UTC – open");
    expect(stretch(null, null)).toBe("always – open");
  });

  it("may be yet to come", () => {
    const now = Date.parse("2026-11-18T09:00:00Z");
    expect(ago("2026-11-18T17:00:00Z", now)).toBe("in 8 h");
    expect(ago("2026-11-18T08:00:00Z", now)).toBe("1 h ago");
  });
});

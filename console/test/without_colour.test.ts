import { describe, expect, it, vi } from "vitest";
import { holdersOf } from "../src/fleet/holders";
import { laneLabel } from "../src/map/lanes";
import { drawSmallMarks } from "../src/map/marks";
import { DARK, LIGHT } from "../src/map/colours";
import type { Fleet } from "../src/map/model";
import { byVerdict, CROSSED, HATCHED, NO_MARK, TICKED } from "../src/map/paint";

vi.hoisted(() => {
  globalThis.matchMedia = () => new EventTarget() as MediaQueryList;
});

/** Every letter is six pixels wide. */
const RULER = {
  font: "",
  measureText: (text: string) => ({ width: 6 * [...text].length }),
} as unknown as CanvasRenderingContext2D;

describe("what a lane has", () => {
  it.each([
    [200, "numa0 16/64 VCPU"],
    [84, "numa0 16/64 V…"],
    [70, "numa0 16/64"],
    [54, "nu… 16/64"],
    [36, "16/64"],
    [10, "16/64"],
  ])("is not cut, of %i pixels", (room, label) => {
    expect(laneLabel(RULER, "numa0", "16/64", "VCPU", room)).toBe(label);
  });
});

describe("without colour", () => {
  const themes = [LIGHT, DARK];

  function lightness(colour: string): number {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const part = parseInt(colour.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    const luminance = 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
    return luminance > 0.008856 ? 116 * Math.cbrt(luminance) - 16 : 903.3 * luminance;
  }

  it("verdicts differ by their lightness, in order", () => {
    for (const { verdict } of themes) {
      const steps = verdict.map(lightness);
      const gaps = steps.slice(1).map((each, at) => Math.abs(each - steps[at]!));
      expect(Math.min(...gaps)).toBeGreaterThan(14);
      expect([...steps].sort((one, other) => one - other)).toEqual(
        steps[0]! < steps[3]! ? steps : steps.reverse(),
      );
    }
  });

  it("a dead host is told from a full one by its lightness", () => {
    for (const { strongest, used, fragmentation } of themes)
      for (const ramp of [used, fragmentation])
        expect(Math.abs(lightness(strongest) - lightness(ramp.at(-1)!))).toBeGreaterThan(10);
  });

  it("verdicts have a mark each", () => {
    const fleet = { size: 5, states: new Uint8Array(5) } as Fleet;
    const marks = [...byVerdict(fleet, [0, 1, 2, 3]).mark];
    expect(new Set(marks.slice(0, 4)).size).toBe(4);
    expect(marks[4]).toBe(marks[3]);
    expect(marks[2]).toBe(NO_MARK);
  });

  it("cells of a few pixels show which hosts are dead or drained", () => {
    const filled: number[][] = [];
    const context = { fillRect: (...box: number[]) => filled.push(box) };
    const cell = [{ x: 1, y: 2, width: 2, height: 2 }];
    for (const mark of [CROSSED, HATCHED, TICKED])
      drawSmallMarks(context as unknown as CanvasRenderingContext2D, LIGHT, mark, cell);
    expect(filled).toEqual([
      [1, 2, 2, 2],
      [1, 2, 1, 2],
    ]);
  });
});

describe("holders of hosts", () => {
  const projects = Array.from({ length: 9 }, (_, at) => `p${at}`);
  const held = { layout: "1", projects, project: [8, 8, -1, 0, 1, 2, 3, 4, 5, 6] };

  it("are named by how many hosts they have; the last are one", () => {
    const found = holdersOf({ layout: "1" } as Fleet, held)!;
    expect(found.names).toEqual(["p8", "p0", "p1", "p2", "p3", "p4", "p5", "others"]);
    expect([...found.holderOf]).toEqual([0, 0, -1, 1, 2, 3, 4, 5, 6, 7]);
  });

  it("are nobody's on another fleet", () => {
    expect(holdersOf({ layout: "2" } as Fleet, held)).toBeUndefined();
  });
});

import { describe, expect, it } from "vitest";
import { held, showing, zoomed } from "../src/map/camera";
import { layOut, neighbour, placeAt } from "../src/map/layout";
import { apply, fleetOf, isFull, lanesOfHost, type MapDocument } from "../src/map/model";
import { selected, sum, totals } from "../src/fleet/select";

const DOCUMENT: MapDocument = {
  version: "1",
  layout: "1",
  hosts: {
    uuid: ["a", "b", "c", "d"],
    name: ["rack2-h10", "rack2-h2", "rack10-h1", null],
    state: [0, 1, 0, 2],
    group: { rack: [0, 0, 1, -1] },
  },
  groups: { rack: ["rack2", "rack10"] },
  classes: ["VCPU", "VGPU"],
  capacity: { VCPU: [8, 8, 4, 0], VGPU: [0, 2, 0, 0] },
  used: { VCPU: [8, 2, 1, 0], VGPU: [0, 0, 0, 0] },
  lanes: {
    host: [1, 0, 1],
    kind: [0, 0, 1],
    name: ["numa0", "numa0", "gpu0"],
    class: [0, 0, 1],
    capacity: [8, 8, 2],
    used: [2, 8, 0],
  },
  kinds: ["numa", "gpu"],
  fragmentation: [0, 10, 20, 0],
};

const ALL = { text: "", state: "all", class: "VCPU" } as const;

describe("the fleet in columns", () => {
  it("knows the lanes of each host, in whatever order they come", () => {
    const fleet = fleetOf(DOCUMENT);
    expect(lanesOfHost(fleet, 1).map((each) => each.name)).toEqual(["numa0", "gpu0"]);
    expect(lanesOfHost(fleet, 2)).toEqual([]);
  });

  it("takes changes in", () => {
    const fleet = fleetOf(DOCUMENT);
    apply(fleet, {
      version: "2",
      from: ["1"],
      hosts: [2],
      used: { VCPU: [4], VGPU: [0] },
      fragmentation: [0],
      lanes: { at: [0], used: [3] },
    });
    expect(isFull(fleet, "VCPU", 2)).toBe(true);
    expect(lanesOfHost(fleet, 1)[0]!.used).toBe(3);
    expect(fleet.version).toBe("2");
  });
});

describe("names", () => {
  it("are in order of their numbers", () => {
    expect([...fleetOf(DOCUMENT).rank]).toEqual([2, 1, 3, 0]);
  });
});

describe("what is shown", () => {
  const fleet = fleetOf(DOCUMENT);
  const named = (text: string, state: "all" | "free" | "full" | "drained" | "dead") => [
    ...selected(fleet, "rack", { ...ALL, text, state }),
  ];

  it("is found by name and state; a host without any of a class is not full", () => {
    expect(named("RACK2", "all")).toEqual([0, 1]);
    expect(named("", "full")).toEqual([0]);
    expect(named("", "drained")).toEqual([1]);
    expect(named("", "dead")).toEqual([3]);
    expect(named("", "free")).toEqual([2]);
  });

  it("adds up per group: rack2 before rack10, hosts without a group last", () => {
    const found = totals(fleet, "rack", selected(fleet, "rack", ALL), "VCPU");
    expect(found.map((each) => each.name)).toEqual(["rack2", "rack10", "no rack"]);
    expect(sum(found)).toMatchObject({
      hosts: 4,
      full: 1,
      drained: 1,
      dead: 1,
      capacity: 20,
      used: 11,
    });
  });
});

describe("the layout", () => {
  const size = { width: 1000, height: 600 };

  function layoutOf(count: number, perGroup: number) {
    const groupOf = Int32Array.from({ length: count }, (_, host) => Math.floor(host / perGroup));
    const order = [...new Set(groupOf)];
    const hosts = Int32Array.from({ length: count }, (_, host) => host);
    return layOut(hosts, groupOf, order, hosts, size);
  }

  it.each([
    [1, 1],
    [38, 6],
    [10_000, 40],
    [10_000, 10_000],
  ])("has %i hosts in view, %i a group", (count, perGroup) => {
    const layout = layoutOf(count, perGroup);
    expect(layout.height).toBeLessThanOrEqual(size.height);
    expect(Math.max(...layout.x) + layout.cell.width).toBeLessThanOrEqual(size.width + 1);
    const places = new Set(Array.from(layout.x, (x, at) => `${x},${layout.y[at]}`));
    expect(places.size).toBe(count);
  });

  it("finds the host under a point", () => {
    const layout = layoutOf(38, 6);
    for (let place = 0; place < 38; place++) {
      expect(placeAt(layout, layout.x[place]! + 1, layout.y[place]! + 1)).toBe(place);
    }
    expect(placeAt(layout, -5, -5)).toBe(-1);
  });

  it("reaches every host by arrow keys", () => {
    const layout = layoutOf(38, 6);
    const seen = new Set([0]);
    const waiting = [0];
    while (waiting.length > 0) {
      const place = waiting.pop()!;
      for (const direction of ["left", "right", "up", "down"] as const) {
        const next = neighbour(layout, place, direction);
        if (!seen.has(next)) waiting.push(next);
        seen.add(next);
      }
    }
    expect(seen.size).toBe(38);
  });
});

describe("the camera", () => {
  const screen = { width: 100, height: 100 };

  it("keeps the point that is zoomed at", () => {
    const camera = zoomed({ scale: 1, x: 0, y: 0 }, 2, 50, 20);
    expect((50 - camera.x) / camera.scale).toBe(50);
    expect((20 - camera.y) / camera.scale).toBe(20);
  });

  it("stays on the map and shows what it is told to", () => {
    expect(held({ scale: 2, x: 50, y: -500 }, screen, screen)).toEqual({
      scale: 2,
      x: 0,
      y: -100,
    });
    const camera = showing({ scale: 4, x: 0, y: 0 }, { x: 90, y: 90, width: 5, height: 5 }, screen);
    expect(95 * camera.scale + camera.x).toBeLessThanOrEqual(100);
  });
});

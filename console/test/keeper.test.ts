import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FleetKeeper, type MapEvent } from "../src/map/following/keeper";
import { usedOf, type Fleet, type MapChange, type MapDocument } from "../src/map/model";

/** A server with hosts that each have a number, which tells of changes as the real one does. */
class Server {
  used = [0, 0, 0, 0];
  generation = 0;
  private trail = new Map<string, number[]>();
  private told: MapDocument = this.look();

  get version(): string {
    return `${this.generation}.${this.used.join()}`;
  }

  /** As a GET of the map does, too. */
  look(): MapDocument {
    const used = [...this.used];
    this.trail.set(this.version, used);
    const uuids = used.map((_, at) => `${this.generation}-${at}`);
    return {
      version: this.version,
      layout: String(this.generation),
      hosts: { uuid: uuids, name: uuids, state: used.map(() => 0), group: {} },
      groups: {},
      classes: ["VCPU"],
      capacity: { VCPU: used.map(() => 9) },
      used: { VCPU: used },
      lanes: { host: [], kind: [], name: [], class: [], capacity: [], used: [] },
      kinds: [],
      fragmentation: used.map(() => 0),
    };
  }

  tell(): MapEvent | undefined {
    const before = this.told.layout;
    this.told = this.look();
    const { version } = this.told;
    const seen = [...this.trail];
    this.trail = new Map([[version, [...this.used]]]);
    if (seen.length === 1) return undefined;
    if (before !== this.told.layout) return { name: "reload", data: { version } };
    const moved = this.used.map((_, at) => at).filter((at) => new Set(seen.map(([, of]) => of[at])).size > 1);
    const data: MapChange = {
      version,
      from: seen.map(([each]) => each).filter((each) => each !== version),
      hosts: moved,
      used: { VCPU: moved.map((at) => this.used[at]!) },
      fragmentation: moved.map(() => 0),
      lanes: { at: [], used: [] },
    };
    return { name: "change", data };
  }
}

/** A page whose answers come when they are let through. */
class Page {
  fleet: Fleet | undefined;
  isBehind = false;
  asked = 0;
  waiting: (() => void)[] = [];
  failures = 0;
  keeper: FleetKeeper;

  constructor(server: Server) {
    this.keeper = new FleetKeeper({
      ask: (known) => {
        this.asked++;
        const found = server.look();
        const isFailing = this.failures > 0 && this.failures-- > 0;
        return new Promise((answer, refuse) =>
          this.waiting.push(() =>
            isFailing ? refuse(new Error("no")) : answer(found.version === known ? undefined : found),
          ),
        );
      },
      show: (fleet) => (this.fleet = fleet),
      setBehind: (is) => (this.isBehind = is),
      fail: () => undefined,
    });
  }

  async answer(): Promise<void> {
    this.waiting.shift()?.();
    await vi.advanceTimersByTimeAsync(0);
  }

  async quiet(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) {
      while (this.waiting.length > 0) await this.answer();
      await vi.advanceTimersByTimeAsync(10_000);
    }
  }

  numbers(): number[] {
    return this.fleet!.uuids.map((_, at) => usedOf(this.fleet!, "VCPU", at));
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function opened(server: Server): Promise<Page> {
  const page = new Page(server);
  void page.keeper.refresh();
  await page.answer();
  return page;
}

describe("a fleet that is followed", () => {
  it("takes changes in without asking", async () => {
    const server = new Server();
    const page = await opened(server);
    for (const used of [3, 5, 0]) {
      server.used[1] = used;
      page.keeper.take(server.tell()!);
      expect(page.numbers()).toEqual(server.used);
    }
    expect(page.asked).toBe(1);
  });

  it("is not set back by an answer that was on its way", async () => {
    const server = new Server();
    const page = await opened(server);
    void page.keeper.refresh();
    server.used[2] = 7;
    page.keeper.take(server.tell()!);
    await page.answer();
    expect(page.numbers()).toEqual(server.used);
    expect(page.asked).toBe(2);
  });

  it("asks again for hosts that came while an older answer was on its way", async () => {
    const server = new Server();
    const page = await opened(server);
    void page.keeper.refresh();
    server.generation++;
    server.used.push(4);
    page.keeper.take(server.tell()!);
    await page.answer();
    expect(page.isBehind).toBe(true);
    await page.quiet();
    expect(page.fleet!.uuids).toEqual(server.look().hosts.uuid);
    expect(page.isBehind).toBe(false);
  });

  it("notices that it missed a change", async () => {
    const server = new Server();
    const page = await opened(server);
    server.used[0] = 1;
    server.tell();
    server.used[1] = 2;
    page.keeper.take(server.tell()!);
    expect(page.isBehind).toBe(true);
    await page.quiet();
    expect(page.numbers()).toEqual(server.used);
  });

  it("asks again, now and then, where it was refused", async () => {
    const server = new Server();
    const page = await opened(server);
    page.failures = 3;
    server.used[0] = 1;
    page.keeper.take({ name: "hello", data: { version: server.version } });
    await page.quiet();
    expect(page.numbers()).toEqual(server.used);
    expect(page.asked).toBe(5);
  });

  it.each(Array.from({ length: 200 }, (_, seed) => seed))("is as the server says: history %i", async (seed) => {
    let state = seed + 1;
    const random = (most: number) => {
      state = (state * 48_271) % 2_147_483_647;
      return state % most;
    };
    const server = new Server();
    const page = await opened(server);
    const told: MapEvent[] = [];
    for (let step = 0; step < 60; step++) {
      const action = random(12);
      if (action < 4) server.used[random(server.used.length)] = random(3);
      else if (action < 7) {
        const event = server.tell();
        if (event) told.push(event);
      } else if (action === 7) {
        server.generation++;
        if (random(2) === 0 && server.used.length > 1) server.used.splice(random(server.used.length), 1);
        else server.used.push(random(3));
      } else if (action === 8) void page.keeper.refresh();
      else if (action === 9) await page.answer();
      else if (told.length > 0) page.keeper.take(told.shift()!);
      if (random(30) === 0) told.splice(0);
      if (random(6) === 0) await vi.advanceTimersByTimeAsync(random(6_000));
    }
    const last = server.tell();
    if (last) told.push(last);
    for (const event of told) page.keeper.take(event);
    page.keeper.take({ name: "hello", data: { version: server.version } });
    await page.quiet();
    expect(page.numbers()).toEqual(server.used);
    expect(page.fleet!.version).toBe(server.version);
    expect(page.isBehind).toBe(false);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openStream, type Connection } from "../src/map/following/stream";

class Source extends EventTarget {
  static made: Source[] = [];
  isClosed = false;

  constructor() {
    super();
    Source.made.push(this);
  }

  close(): void {
    this.isClosed = true;
  }

  break(): void {
    this.dispatchEvent(new Event("error"));
  }

  hello(): void {
    this.dispatchEvent(new MessageEvent("hello", { data: '{"version":"1"}' }));
  }
}

beforeEach(() => {
  vi.useFakeTimers();
  Source.made = [];
  vi.stubGlobal("EventSource", Source);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("a stream", () => {
  const start = () => {
    const seen: Connection[] = [];
    const stop = openStream({ connection: (now) => seen.push(now), event: () => undefined });
    return { seen, stop, last: () => Source.made.at(-1)! };
  };

  it("is tried again after an outage, not polled for good", () => {
    const { seen, last } = start();
    last().hello();
    last().break();
    vi.advanceTimersByTime(2_000);
    last().break();
    expect(seen.at(-1)).toBe("polling");
    const before = Source.made.length;
    vi.advanceTimersByTime(29_000);
    expect(Source.made.length).toBe(before);
    vi.advanceTimersByTime(31_000);
    expect(Source.made.length).toBe(before + 1);
    last().break();
    vi.advanceTimersByTime(60_000);
    last().hello();
    expect(seen.at(-1)).toBe("live");
    expect(Source.made.filter((each) => !each.isClosed)).toEqual([last()]);
  });

  it("is closed for good", () => {
    const { stop, last } = start();
    last().break();
    stop();
    vi.advanceTimersByTime(120_000);
    expect(Source.made.every((each) => each.isClosed)).toBe(true);
  });
});

// A stream of events about the map, taken up again whenever it breaks. Where it does not get
// through, whoever listens has to ask now and then, until it does.
import type { MapEvent } from "./keeper";

const EVENTS = "/console/api/dovetail/v1/map/events";
const FAILURES_UNTIL_POLLING = 2;
const RETRY_LEAST = 30_000;
const NAMES = ["hello", "change", "reload"] as const;

export type Connection = "connecting" | "live" | "polling";

export interface Listener {
  connection: (now: Connection) => void;
  event: (event: MapEvent) => void;
}

/** Listen until the returned function is called. */
export function openStream(to: Listener): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;

  function open(): void {
    const stream = new EventSource(EVENTS);
    source = stream;
    for (const name of NAMES) {
      stream.addEventListener(name, (event: MessageEvent<string>) => {
        if (name === "hello") {
          failures = 0;
          to.connection("live");
        }
        to.event({ name, data: JSON.parse(event.data) } as MapEvent);
      });
    }
    stream.addEventListener("error", () => {
      stream.close();
      failures++;
      const isLost = failures >= FAILURES_UNTIL_POLLING;
      to.connection(isLost ? "polling" : "connecting");
      // All pages of a server that was away come back; not all at the same moment.
      const least = isLost ? RETRY_LEAST : 1_000;
      timer = setTimeout(open, least * (1 + Math.random()));
    });
  }

  to.connection("connecting");
  open();
  return () => {
    source?.close();
    clearTimeout(timer);
  };
}

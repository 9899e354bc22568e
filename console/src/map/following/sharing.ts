// One stream for all pages of a browser: whichever of them has the lock listens and passes on what
// it hears. Where browsers have no locks or channels (or give them to pages under TLS only), each
// page listens by itself.
import type { MapEvent } from "./keeper";
import { openStream, type Connection, type Listener } from "./stream";

const NAME = "dovetail-map";

type Said =
  | { kind: "joined" }
  | { kind: "connection"; now: Connection }
  | { kind: "event"; event: MapEvent };

/** Listen until the returned function is called, to a stream of this page's or of another's. */
export function listen(to: Listener): () => void {
  if (!navigator.locks || typeof BroadcastChannel === "undefined") return openStream(to);
  const stop = new AbortController();
  const channel = new BroadcastChannel(NAME);
  const say = (said: Said) => channel.postMessage(said);
  channel.onmessage = ({ data }: MessageEvent<Said>) => {
    if (data.kind === "connection") to.connection(data.now);
    else if (data.kind === "event") to.event(data.event);
  };
  say({ kind: "joined" });
  navigator.locks
    .request(NAME, { signal: stop.signal }, () => {
      if (stop.signal.aborted) return undefined;
      const close = lead(to, channel, say);
      return new Promise<void>((done) => {
        stop.signal.addEventListener("abort", () => {
          close();
          done();
        });
      });
    })
    .catch((error: unknown) => {
      // Whoever waited for the lock does not any more.
      if (!stop.signal.aborted) throw error;
    });
  return () => {
    stop.abort();
    channel.close();
  };
}

function lead(to: Listener, channel: BroadcastChannel, say: (said: Said) => void): () => void {
  let connection: Connection = "connecting";
  let version: string | undefined;
  channel.onmessage = ({ data }: MessageEvent<Said>) => {
    if (data.kind !== "joined") return;
    say({ kind: "connection", now: connection });
    // As a stream of its own would begin.
    if (connection === "live" && version !== undefined)
      say({ kind: "event", event: { name: "hello", data: { version } } });
  };
  return openStream({
    connection: (now) => {
      connection = now;
      say({ kind: "connection", now });
      to.connection(now);
    },
    event: (event) => {
      version = event.data.version;
      say({ kind: "event", event });
      to.event(event);
    },
  });
}

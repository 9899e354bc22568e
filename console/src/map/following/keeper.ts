// Keeps one fleet true to what a stream of events tells. The map is asked for beside the stream, so
// either may be ahead of the other: a change names the versions that it leads on from, and whatever
// does not lead on from what is known has the map asked for again.
import { apply, fleetOf, type Fleet, type MapChange, type MapDocument } from "../model";

export type MapEvent =
  | { name: "hello" | "reload"; data: { version: string } }
  | { name: "change"; data: MapChange };

export interface Keeping {
  /** The map, or nothing if it has this version. */
  ask: (known: string | undefined) => Promise<MapDocument | undefined>;
  /** Another fleet, or other numbers of the same. */
  show: (fleet: Fleet) => void;
  /** Whether there is something that the fleet does not have yet. */
  setBehind: (isBehind: boolean) => void;
  fail: (error: unknown) => void;
}

const SOON = 500;
const LATEST = 5_000;

export class FleetKeeper {
  private fleet: Fleet | undefined;
  private asking: Promise<void> | undefined;
  /** Whether somebody asked while the map was on its way. */
  private isWantedAgain = false;
  /** What was told while the map was on its way: the answer may have it or not. */
  private heard: MapEvent[] = [];
  private isStopped = false;
  private pause = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly to: Keeping) {}

  /** Ask for the map as it is now: an answer that is on its way may be older. */
  refresh(): Promise<void> {
    if (this.asking) {
      this.isWantedAgain = true;
      return this.asking;
    }
    clearTimeout(this.timer);
    this.timer = undefined;
    this.asking = this.askAll().finally(() => (this.asking = undefined));
    return this.asking;
  }

  take(event: MapEvent): void {
    if (this.asking) this.heard.push(event);
    else if (this.fleet && !this.leadsOn(event)) this.fallBehind();
  }

  /** Somebody looks again. */
  start(): void {
    this.isStopped = false;
  }

  /** Nobody looks any more. */
  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private async askAll(): Promise<void> {
    do {
      this.isWantedAgain = false;
      this.heard = [];
      try {
        const found = await this.to.ask(this.fleet?.version);
        if (found) this.fleet = fleetOf(found);
        const before = found ? undefined : this.fleet!.version;
        this.catchUp();
        if (this.fleet!.version !== before) this.to.show(this.fleet!);
      } catch (error) {
        this.to.fail(error);
        this.askLater();
        return;
      }
    } while (this.isWantedAgain);
  }

  /** Of what was told meanwhile, the answer has the first part, and the rest leads on from it. */
  private catchUp(): void {
    let isTrue = true;
    for (const event of this.heard) isTrue = this.leadsOn(event);
    this.heard = [];
    if (isTrue) this.beTrue();
    else this.fallBehind();
  }

  /** Whether the fleet is, with this, as the stream says. */
  private leadsOn({ name, data }: MapEvent): boolean {
    const fleet = this.fleet!;
    if (data.version === fleet.version) {
      if (!this.asking) this.beTrue();
      return true;
    }
    if (name !== "change" || !data.from.includes(fleet.version)) return false;
    apply(fleet, data);
    if (!this.asking) {
      this.beTrue();
      this.to.show(fleet);
    }
    return true;
  }

  private beTrue(): void {
    this.pause = 0;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.to.setBehind(false);
  }

  private fallBehind(): void {
    this.to.setBehind(true);
    this.askLater();
  }

  /** At once at first; a server whose every answer is of another moment is asked now and then. */
  private askLater(): void {
    if (this.timer !== undefined || this.isStopped) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.refresh();
    }, this.pause);
    this.pause = Math.min(LATEST, Math.max(SOON, 2 * this.pause));
  }
}

// What a key does on the map.
import type { Direction } from "./layout";

export type MapAction =
  | { kind: "move"; direction: Direction }
  | { kind: "edge"; last: boolean }
  | { kind: "zoom"; factor: number }
  | { kind: "whole" }
  | { kind: "open" };

const ACTIONS: Record<string, MapAction> = {
  ArrowLeft: { kind: "move", direction: "left" },
  ArrowRight: { kind: "move", direction: "right" },
  ArrowUp: { kind: "move", direction: "up" },
  ArrowDown: { kind: "move", direction: "down" },
  Home: { kind: "edge", last: false },
  End: { kind: "edge", last: true },
  "+": { kind: "zoom", factor: 1.5 },
  "=": { kind: "zoom", factor: 1.5 },
  "-": { kind: "zoom", factor: 1 / 1.5 },
  "0": { kind: "whole" },
  Enter: { kind: "open" },
};

/** Nothing where the browser has a use of its own for the key. */
export function actionOf(event: {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}): MapAction | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  return ACTIONS[event.key];
}

// What the mouse, a pen or fingers do on the map: drag, wheel, pinch, point, click, double click.
import { useEffect } from "preact/hooks";

export interface PointerActions {
  pan: (x: number, y: number) => void;
  zoom: (factor: number, x: number, y: number) => void;
  hover: (x: number, y: number) => void;
  leave: () => void;
  choose: (x: number, y: number) => void;
  open: (x: number, y: number) => void;
  /** Whether a turn of the wheel is for the map, not for the page around it. */
  wantsWheel: (event: WheelEvent) => boolean;
}

/** Less is a click with a shaky hand. */
const DRAGGED = 4;

export function usePointer(target: { current: HTMLElement | null }, actions: PointerActions): void {
  useEffect(() => {
    const element = target.current!;
    const down = new Map<number, { x: number; y: number }>();
    let travelled = 0;
    const stop = new AbortController();
    const on = <K extends keyof HTMLElementEventMap>(
      name: K,
      handle: (event: HTMLElementEventMap[K]) => void,
      passive = true,
    ) => element.addEventListener(name, handle, { signal: stop.signal, passive });

    on("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      if (down.size === 1) travelled = 0;
    });
    on("pointermove", (event) => {
      const from = down.get(event.pointerId);
      if (!from) {
        actions.hover(event.offsetX, event.offsetY);
        return;
      }
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
      const x = event.offsetX - from.x;
      const y = event.offsetY - from.y;
      travelled += Math.abs(x) + Math.abs(y);
      if (other) {
        const before = Math.hypot(from.x - other.x, from.y - other.y);
        const after = Math.hypot(event.offsetX - other.x, event.offsetY - other.y);
        if (before > 0) actions.zoom(after / before, other.x, other.y);
      } else if (travelled > DRAGGED) actions.pan(x, y);
      down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    });
    on("pointerup", (event) => {
      if (down.size === 1 && travelled <= DRAGGED) actions.choose(event.offsetX, event.offsetY);
      down.delete(event.pointerId);
    });
    on("pointercancel", (event) => down.delete(event.pointerId));
    on("pointerleave", () => actions.leave());
    on("dblclick", (event) => actions.open(event.offsetX, event.offsetY));
    on(
      "wheel",
      (event) => {
        if (!actions.wantsWheel(event)) return;
        event.preventDefault();
        const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
        actions.zoom(Math.exp(-event.deltaY * lines * 0.0015), event.offsetX, event.offsetY);
      },
      false,
    );
    return () => stop.abort();
  }, []);
}

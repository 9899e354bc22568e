// The map on a canvas: pan by dragging, zoom by wheel or keys, a cursor that arrow keys move.
import {
  computed,
  useSignal,
  useSignalEffect,
  type ReadonlySignal,
  type Signal,
} from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { held, showing, WHOLE, zoomed, type Camera, type Size } from "./camera";
import { theme } from "./colours";
import { draw, type GroupLabel } from "./draw";
import { actionOf } from "./keyboard";
import { layOut, neighbour, placeAt, type Block, type Layout } from "./layout";
import { revision } from "./live";
import type { Fleet, Grouping } from "./model";
import type { Paint } from "./paint";
import { usePointer } from "./pointer";

export interface MapProps {
  fleet: ReadonlySignal<Fleet | undefined>;
  grouping: ReadonlySignal<Grouping>;
  /** Groups in the order of their blocks. */
  groupOrder: ReadonlySignal<number[]>;
  hosts: ReadonlySignal<Int32Array>;
  paint: ReadonlySignal<Paint | undefined>;
  class: ReadonlySignal<string>;
  /** What is looked at, in any words: the map is shown as a whole when it changes, and stays where
   * it is however the fleet moves. */
  view: ReadonlySignal<string>;
  /** The UUID of the host under the cursor: hosts before it may come and go. */
  cursor: Signal<string | undefined>;
  groupLabel: (block: Block) => GroupLabel;
  /** A host in a line, for the pointer and for whoever cannot see the map. */
  describe: (fleet: Fleet, host: number) => string;
  onOpen: (uuid: string) => void;
  /** Whether there is more above and below it: then the wheel is the page's until somebody goes in. */
  isInPage?: boolean;
  label: string;
}

export function MapCanvas(props: MapProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const keys = useRef<HTMLDivElement>(null);
  const screen = useSignal<Size>({ width: 0, height: 0 });
  const camera = useSignal<Camera>(WHOLE);
  const hovered = useSignal(-1);
  const layout = useMemo(() => layoutOf(props, screen), []);

  useSize(frame, screen);
  useDrawing(canvas, props, { screen, camera, hovered, layout });
  const seen = useRef("");
  useSignalEffect(() => {
    const now = layout.value;
    if (!now) return;
    const { width, height } = screen.value;
    const asked = `${width} ${height} ${props.view.value}`;
    camera.value = asked === seen.current ? held(camera.peek(), now, screen.peek()) : WHOLE;
    seen.current = asked;
    hovered.value = -1;
  });
  // Once per host: whoever pans away from the cursor wants to be there.
  const revealed = useRef<string | undefined>(undefined);
  useSignalEffect(() => {
    const uuid = props.cursor.value;
    const place = layout.value ? placeOf(uuid) : -1;
    if (place < 0 || revealed.current === uuid) return;
    revealed.current = uuid;
    reveal(place);
  });

  function moveCamera(next: Camera): void {
    if (layout.peek()) camera.value = held(next, layout.peek()!, screen.peek());
  }

  function reveal(place: number): void {
    const now = layout.peek()!;
    const at = {
      x: now.x[place]!,
      y: now.y[place]!,
      width: now.cell.width,
      height: now.cell.height,
    };
    moveCamera(showing(camera.peek(), at, screen.peek()));
  }

  function placeOf(uuid: string | undefined): number {
    const host = uuid === undefined ? undefined : props.fleet.peek()?.byUuid.get(uuid);
    return host === undefined ? -1 : (layout.peek()?.at[host] ?? -1);
  }

  function uuidAt(place: number): string | undefined {
    return props.fleet.peek()?.uuids[layout.peek()?.hosts[place] ?? -1];
  }

  function hostAt(x: number, y: number): number {
    const now = layout.peek();
    const { scale, x: left, y: top } = camera.peek();
    return now ? placeAt(now, (x - left) / scale, (y - top) / scale) : -1;
  }

  usePointer(canvas, {
    pan: (x, y) => moveCamera({ ...camera.peek(), x: camera.peek().x + x, y: camera.peek().y + y }),
    zoom: (factor, x, y) => moveCamera(zoomed(camera.peek(), factor, x, y)),
    hover: (x, y) => (hovered.value = hostAt(x, y)),
    leave: () => (hovered.value = -1),
    choose: (x, y) => {
      const uuid = uuidAt(hostAt(x, y));
      if (uuid) props.cursor.value = uuid;
    },
    open: (x, y) => {
      const uuid = uuidAt(hostAt(x, y));
      if (uuid) props.onOpen(uuid);
    },
    wantsWheel: (event) => {
      const isHere = event.ctrlKey || document.activeElement === keys.current;
      const isMore = event.deltaY < 0 || camera.peek().scale > 1;
      return isMore && (!props.isInPage || isHere);
    },
  });

  function onKey(event: KeyboardEvent): void {
    const action = actionOf(event);
    const now = layout.peek();
    if (!action || !now || now.hosts.length === 0) return;
    event.preventDefault();
    const { width, height } = screen.peek();
    const place = placeOf(props.cursor.peek());
    if (action.kind === "zoom") {
      const at = place >= 0 ? centreOf(now, place, camera.peek()) : { x: width / 2, y: height / 2 };
      moveCamera(zoomed(camera.peek(), action.factor, at.x, at.y));
    } else if (action.kind === "whole") camera.value = WHOLE;
    else if (action.kind === "open") {
      if (place >= 0) props.onOpen(props.cursor.peek()!);
    } else {
      const next =
        action.kind === "edge"
          ? action.last
            ? now.hosts.length - 1
            : 0
          : place < 0
            ? 0
            : neighbour(now, place, action.direction);
      props.cursor.value = uuidAt(next);
    }
  }

  const wordsOf = (host: number | undefined) => {
    void revision.value;
    const fleet = props.fleet.value;
    return fleet && host !== undefined ? props.describe(fleet, host) : "";
  };
  const focused = useMemo(
    () => computed(() => wordsOf(props.fleet.value?.byUuid.get(props.cursor.value ?? ""))),
    [],
  );
  const pointed = useMemo(
    () =>
      computed(() => wordsOf(hovered.value < 0 ? undefined : layout.value?.hosts[hovered.value])),
    [],
  );

  return (
    <div class="map" ref={frame}>
      <div
        class="map-keys"
        ref={keys}
        role="application"
        tabIndex={0}
        aria-label={props.label}
        aria-describedby="map-help"
        onKeyDown={onKey}
      >
        <canvas ref={canvas} aria-hidden="true" />
      </div>
      <p class="sr" aria-live="polite">
        {focused}
      </p>
      {pointed.value && (
        <p class="map-hover" aria-hidden="true">
          <bdi>{pointed}</bdi>
        </p>
      )}
      <div class="map-zoom">
        <button type="button" aria-label="Zoom in" onClick={() => centreZoom(1.5)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => centreZoom(1 / 1.5)}>
          −
        </button>
        <button type="button" onClick={() => (camera.value = WHOLE)}>
          Whole
        </button>
      </div>
    </div>
  );

  function centreZoom(factor: number): void {
    const { width, height } = screen.peek();
    moveCamera(zoomed(camera.peek(), factor, width / 2, height / 2));
  }
}

function centreOf(
  layout: Layout,
  place: number,
  { scale, x, y }: Camera,
): { x: number; y: number } {
  return {
    x: (layout.x[place]! + layout.cell.width / 2) * scale + x,
    y: (layout.y[place]! + layout.cell.height / 2) * scale + y,
  };
}

function layoutOf(
  props: MapProps,
  screen: ReadonlySignal<Size>,
): ReadonlySignal<Layout | undefined> {
  return computed(() => {
    const fleet = props.fleet.value;
    const size = screen.value;
    if (!fleet || size.width === 0) return undefined;
    const groupOf = fleet.groupOf[props.grouping.value];
    return layOut(props.hosts.value, groupOf, props.groupOrder.value, fleet.rank, size);
  });
}

function useSize(frame: { current: HTMLDivElement | null }, screen: Signal<Size>): void {
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (!entry) return;
      const { width, height } = entry.contentRect;
      const now = screen.peek();
      if (Math.floor(width) !== now.width || Math.floor(height) !== now.height) {
        screen.value = { width: Math.floor(width), height: Math.floor(height) };
      }
    });
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
}

interface Seen {
  screen: ReadonlySignal<Size>;
  camera: ReadonlySignal<Camera>;
  hovered: ReadonlySignal<number>;
  layout: ReadonlySignal<Layout | undefined>;
}

/** Draw once per frame, however much has changed. Marks tell a bench when something was painted. */
function useDrawing(
  canvas: { current: HTMLCanvasElement | null },
  props: MapProps,
  seen: Seen,
): void {
  const frame = useRef(0);
  const drawn = useRef(-1);
  useSignalEffect(() => {
    const fleet = props.fleet.value;
    const layout = seen.layout.value;
    const paint = props.paint.value;
    const screen = seen.screen.value;
    const at = revision.value;
    const cursor = fleet?.byUuid.get(props.cursor.value ?? "");
    const scene = {
      class: props.class.value,
      theme: theme.value,
      camera: seen.camera.value,
      hovered: seen.hovered.value,
      groupLabel: props.groupLabel,
    };
    if (!fleet || !layout || !paint || screen.width === 0) return;
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      const element = canvas.current;
      const context = element?.getContext("2d", { alpha: false });
      if (!element || !context) return;
      const ratio = devicePixelRatio || 1;
      const width = Math.round(screen.width * ratio);
      const height = Math.round(screen.height * ratio);
      if (element.width !== width || element.height !== height) {
        element.width = width;
        element.height = height;
        element.style.width = `${screen.width}px`;
        element.style.height = `${screen.height}px`;
      }
      const place = cursor === undefined ? -1 : (layout.at[cursor] ?? -1);
      draw(context, { ...scene, fleet, layout, paint, screen, ratio, cursor: place });
      if (drawn.current < 0) performance.mark("dovetail:painted");
      else if (drawn.current !== at) performance.mark("dovetail:updated");
      drawn.current = at;
    });
  });
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
}

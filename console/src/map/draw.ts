// Draws the map: as much of each host as there is room for. A few pixels have a colour, more have
// a mark, a card has its name and a lane per NUMA node and device.
import type { Camera, Size } from "./camera";
import type { Theme } from "./colours";
import { fitted } from "./fitting";
import { drawLanes } from "./lanes";
import type { Block, Layout } from "./layout";
import { drawMark, drawMarks, drawSmallMarks } from "./marks";
import type { Fleet } from "./model";
import { LAST_MARK, NO_MARK, type Paint } from "./paint";

const FONT = '11px system-ui, "Segoe UI", sans-serif';
const BOLD = '600 11px system-ui, "Segoe UI", sans-serif';
const SMALL = '9px system-ui, "Segoe UI", sans-serif';
const MARKED = 4.5;
/** A name is not cut shorter than that for what is said beside it. */
const LEAST_NAME = 44;
const CARD_WIDTH = 44;
const CARD_HEIGHT = 24;

/** A group's name, and what else there is to say of it: as much as there is room for, the first
 * first. */
export interface GroupLabel {
  name: string;
  notes: string[];
}

export interface Scene {
  fleet: Fleet;
  layout: Layout;
  paint: Paint;
  class: string;
  theme: Theme;
  camera: Camera;
  screen: Size;
  ratio: number;
  /** Places in the layout. */
  cursor: number;
  hovered: number;
  groupLabel: (block: Block) => GroupLabel;
}

type Context = CanvasRenderingContext2D;

export function draw(context: Context, scene: Scene): void {
  const { theme, screen, ratio, camera, layout } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, screen.width, screen.height);
  const width = layout.cell.width * camera.scale;
  const height = layout.cell.height * camera.scale;
  const seen = inView(scene, width, height);
  if (width >= CARD_WIDTH && height >= CARD_HEIGHT) drawCards(context, scene, seen, width, height);
  else drawCells(context, scene, seen, width, height);
  drawHeaders(context, scene);
  outline(context, scene, scene.hovered, theme.quiet, 1);
  outline(context, scene, scene.cursor, theme.cursor, 2.5);
}

/** Places in view. Blocks out of view are left out as a whole. */
function inView(scene: Scene, width: number, height: number): Int32Array {
  const { layout, camera, screen } = scene;
  const found = new Int32Array(layout.hosts.length);
  let count = 0;
  for (const block of layout.blocks) {
    if (!isSeen(block, camera, screen)) continue;
    for (let place = block.from; place < block.to; place++) {
      const x = layout.x[place]! * camera.scale + camera.x;
      const y = layout.y[place]! * camera.scale + camera.y;
      if (x > -width && y > -height && x < screen.width && y < screen.height)
        found[count++] = place;
    }
  }
  return found.subarray(0, count);
}

function isSeen(block: Block, camera: Camera, screen: Size): boolean {
  const left = block.x * camera.scale + camera.x;
  const top = block.y * camera.scale + camera.y;
  const right = left + block.width * camera.scale;
  const bottom = top + block.height * camera.scale;
  return right > 0 && bottom > 0 && left < screen.width && top < screen.height;
}

/** Colour by colour: changing it is what costs, not the rectangles. */
function drawCells(
  context: Context,
  scene: Scene,
  seen: Int32Array,
  width: number,
  height: number,
): void {
  const { layout, paint, theme, camera } = scene;
  const palette = theme[paint.palette];
  for (let step = -1; step < palette.length; step++) {
    context.fillStyle = palette[step] ?? theme.none;
    for (const place of seen) {
      if (paint.step[layout.hosts[place]!] !== step) continue;
      const x = layout.x[place]! * camera.scale + camera.x;
      const y = layout.y[place]! * camera.scale + camera.y;
      context.fillRect(x, y, width, height);
    }
  }
  const drawAll = Math.min(width, height) < MARKED ? drawSmallMarks : drawMarks;
  for (let mark = NO_MARK + 1; mark <= LAST_MARK; mark++) {
    drawAll(context, theme, mark, boxes(scene, seen, mark, width, height));
  }
  if (!paint.letter || height < 12) return;
  for (const { x, y, place } of boxes(scene, seen, NO_MARK, width, height)) {
    drawLetter(context, scene, layout.hosts[place]!, x, y, width, height);
  }
}

/** Where the cells in view are that have a mark. */
function* boxes(scene: Scene, seen: Int32Array, mark: number, width: number, height: number) {
  const { layout, paint, camera } = scene;
  for (const place of seen) {
    if (paint.mark[layout.hosts[place]!] !== mark) continue;
    const x = layout.x[place]! * camera.scale + camera.x;
    const y = layout.y[place]! * camera.scale + camera.y;
    yield { x, y, width, height, place };
  }
}

function drawLetter(
  context: Context,
  scene: Scene,
  host: number,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  context.font = BOLD;
  context.fillStyle = scene.theme.mark;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(scene.paint.letter?.[host] ?? "", x + width / 2, y + height / 2);
  context.textAlign = "left";
}

function drawCards(
  context: Context,
  scene: Scene,
  seen: Int32Array,
  width: number,
  height: number,
): void {
  const { layout, camera } = scene;
  for (const place of seen) {
    const x = Math.round(layout.x[place]! * camera.scale + camera.x);
    const y = Math.round(layout.y[place]! * camera.scale + camera.y);
    drawCard(context, scene, layout.hosts[place]!, x, y, Math.round(width), Math.round(height));
  }
}

function drawCard(
  context: Context,
  scene: Scene,
  host: number,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  const { theme, paint, fleet } = scene;
  context.fillStyle = theme.card;
  context.fillRect(x, y, width, height);
  const stripe = Math.max(8, Math.min(18, width / 7));
  context.fillStyle = theme[paint.palette][paint.step[host]!] ?? theme.none;
  context.fillRect(x, y, stripe, height);
  const mark = paint.mark[host]!;
  if (mark !== NO_MARK) drawMark(context, theme, mark, { x, y, width: stripe, height });
  else if (paint.letter) drawLetter(context, scene, host, x, y, stripe, height);
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  context.font = FONT;
  context.fillStyle = theme.ink;
  context.textBaseline = "top";
  const left = x + stripe + 4;
  const room = width - stripe - 8;
  context.fillText(fitted(context, fleet.names[host]!, room, true), left, y + 4);
  drawLanes(context, scene, host, left, y + 18, room, height - 21);
}

function drawHeaders(context: Context, scene: Scene): void {
  const { layout, camera, screen, theme } = scene;
  const room = layout.cell.header * camera.scale;
  if (room < 9) return;
  context.font = room < 13 ? SMALL : BOLD;
  context.textBaseline = "bottom";
  for (const block of layout.blocks) {
    if (!isSeen(block, camera, screen)) continue;
    const x = Math.max(0, block.x * camera.scale + camera.x);
    const y = block.y * camera.scale + camera.y + room - (room < 13 ? 0 : 3);
    const end = (block.x + block.width) * camera.scale + camera.x;
    const { name, notes } = scene.groupLabel(block);
    const wide = (text: string) => (text ? context.measureText(text).width + 6 : 0);
    const least = Math.min(LEAST_NAME, wide(name));
    const rooms = notes.map((_, at) => notes.slice(0, at + 1).filter(Boolean).join(", "));
    const note = rooms.findLast((each) => end - x - wide(each) >= least) ?? "";
    const shown = fitted(context, name, end - x - wide(note));
    context.fillStyle = theme.ink;
    context.fillText(shown, x, y);
    // Drawn apart, so that a name that runs to the left does not take it along.
    if (note && shown) {
      context.fillStyle = theme.quiet;
      context.fillText(note, x + context.measureText(shown).width + 6, y);
    }
  }
}

function outline(
  context: Context,
  scene: Scene,
  place: number,
  colour: string,
  thickness: number,
): void {
  const { layout, camera } = scene;
  if (place < 0 || place >= layout.hosts.length) return;
  const x = layout.x[place]! * camera.scale + camera.x;
  const y = layout.y[place]! * camera.scale + camera.y;
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  const grow = thickness / 2 + 0.5;
  context.strokeRect(
    x - grow,
    y - grow,
    layout.cell.width * camera.scale + 2 * grow,
    layout.cell.height * camera.scale + 2 * grow,
  );
}

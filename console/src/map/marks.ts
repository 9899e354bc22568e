// Marks on cells: what a host is without looking at its colour.
import type { Theme } from "./colours";
import { BARRED, CROSSED, DOTTED, HALVED, HATCHED, TICKED } from "./paint";

type Context = CanvasRenderingContext2D;

/** A rectangle that a mark is drawn into. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** One mark on one cell. */
export function drawMark(context: Context, theme: Theme, mark: number, box: Box): void {
  drawMarks(context, theme, mark, [box]);
}

/**
 * The same mark on many cells of one size, as one path: a stroke for each would take most of a
 * frame. A drained host is hatched, a dead one crossed, a full one barred; what fits has a tick,
 * what was not looked at a dot.
 */
export function drawMarks(
  context: Context,
  theme: Theme,
  mark: number,
  boxes: Iterable<Box>,
): void {
  const trace = TRACES[mark];
  if (!trace) return;
  let least = 0;
  context.beginPath();
  for (const box of boxes) {
    least = Math.min(box.width, box.height);
    trace(context, box, least);
  }
  if (mark === HALVED || mark === DOTTED) {
    context.fillStyle = theme.ink;
    context.globalAlpha = 0.55;
    context.fill();
    context.globalAlpha = 1;
    return;
  }
  context.strokeStyle = mark === BARRED || mark === TICKED ? theme.mark : theme.ink;
  context.lineWidth =
    mark === BARRED ? Math.max(1, least / 5) : Math.max(1, Math.min(2, least / 8));
  context.stroke();
}

/**
 * On cells of a few pixels, where a line would be a smudge: a dead host is darker (in dark: lighter)
 * than any colour, a drained one half of that. What a verdict is, is told by lightness.
 */
export function drawSmallMarks(
  context: Context,
  theme: Theme,
  mark: number,
  boxes: Iterable<Box>,
): void {
  if (mark !== CROSSED && mark !== HATCHED) return;
  context.fillStyle = theme.strongest;
  for (const { x, y, width, height } of boxes) {
    context.fillRect(x, y, mark === CROSSED ? width : width / 2, height);
  }
}

type Trace = (context: Context, box: Box, least: number) => void;

const TRACES: Record<number, Trace> = {
  [HATCHED]: (context, { x, y, width, height }) => hatch(context, x, y, width, height),
  [CROSSED]: (context, { x, y, width, height }, least) => {
    const arm = least * 0.36;
    const middleX = x + width / 2;
    const middleY = y + height / 2;
    context.moveTo(middleX - arm, middleY - arm);
    context.lineTo(middleX + arm, middleY + arm);
    context.moveTo(middleX - arm, middleY + arm);
    context.lineTo(middleX + arm, middleY - arm);
  },
  [BARRED]: (context, { x, y, width, height }, least) => {
    context.moveTo(x + width / 2 - least * 0.3, y + height / 2);
    context.lineTo(x + width / 2 + least * 0.3, y + height / 2);
  },
  [TICKED]: (context, { x, y, width, height }, least) => {
    const arm = Math.min(least, 16) * 0.3;
    const middleX = x + width / 2;
    const middleY = y + height / 2;
    context.moveTo(middleX - arm, middleY);
    context.lineTo(middleX - arm * 0.2, middleY + arm * 0.8);
    context.lineTo(middleX + arm, middleY - arm * 0.8);
  },
  [DOTTED]: (context, { x, y, width, height }, least) => {
    const side = Math.max(1, Math.min(least, 16) * 0.25);
    context.rect(x + (width - side) / 2, y + (height - side) / 2, side, side);
  },
  [HALVED]: (context, { x, y, height }, least) => {
    context.moveTo(x, y + height);
    context.lineTo(x + least * 0.6, y + height);
    context.lineTo(x, y + height - least * 0.6);
    context.closePath();
  },
};

function hatch(context: Context, x: number, y: number, width: number, height: number): void {
  const step = Math.max(3, Math.min(7, height / 2));
  for (let along = step / 2; along < width + height; along += step) {
    const fromX = Math.min(along, width);
    const toX = Math.max(0, along - height);
    context.moveTo(x + fromX, y + along - fromX);
    context.lineTo(x + toX, y + along - toX);
  }
}

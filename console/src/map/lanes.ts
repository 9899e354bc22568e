// Lanes on a card: a bar for each NUMA node and device, with what it is where there is room.
import { stepOf } from "./colours";
import type { Scene } from "./draw";
import { fitted } from "./fitting";
import { shortLane } from "./words";

const FONT = '11px system-ui, "Segoe UI", sans-serif';
const LABELLED_LANE = 12;
const LANE = 7;

type Context = CanvasRenderingContext2D;

/** Lanes of the class that is looked at come first; the others follow where there is room. */
export function drawLanes(
  context: Context,
  scene: Scene,
  host: number,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  const { fleet, theme } = scene;
  const { lanes } = fleet;
  const looked = fleet.classes.indexOf(scene.class);
  const own = lanes.order.subarray(lanes.first[host]!, lanes.first[host + 1]!);
  const main = own.filter((lane) => lanes.classOf[lane] === looked);
  const all = [...main, ...own.filter((lane) => lanes.classOf[lane] !== looked)];
  const isWide = Math.floor(height / LABELLED_LANE) >= Math.max(7, main.length + 1);
  const wanted = isWide || main.length === 0 ? all : main;
  if (wanted.length === 0 || height < 3) return;
  const step = Math.min(14, Math.max(isWide ? LABELLED_LANE : 3, height / wanted.length));
  const most = Math.max(1, Math.floor(height / step));
  const isLabelled = step >= LABELLED_LANE && width >= 108;
  const labelWidth = isLabelled ? Math.min(190, width * (width < 130 ? 0.66 : 0.6)) : 0;
  const shown =
    wanted.length > most && isLabelled ? wanted.slice(0, most - 1) : wanted.slice(0, most);
  context.font = FONT;
  shown.forEach((lane, index) => {
    const top = y + index * step;
    const thickness = Math.max(2, Math.min(LANE, step - 2));
    const track = width - labelWidth;
    const capacity = lanes.capacity[lane]!;
    const share = capacity > 0 ? Math.min(1, lanes.used[lane]! / capacity) : 0;
    context.fillStyle = theme.none;
    context.fillRect(x + labelWidth, top, track, thickness);
    const ramp = lanes.classOf[lane] === looked ? theme.used : theme.fragmentation;
    context.fillStyle = ramp[Math.max(4, stepOf(share))]!;
    context.fillRect(x + labelWidth, top, track * share, thickness);
    if (isLabelled) {
      context.fillStyle = theme.quiet;
      drawLabel(context, scene, host, lane, x, top - 2, labelWidth - 6);
    }
  });
  if (isLabelled && shown.length < wanted.length) {
    context.fillStyle = theme.quiet;
    context.fillText(`and ${wanted.length - shown.length} more`, x, y + shown.length * step - 2);
  }
}

/** The amount is what one looks for: the name is cut for it, and a class that follows it goes. */
function drawLabel(
  context: Context,
  { fleet, class: looked }: Scene,
  host: number,
  lane: number,
  x: number,
  y: number,
  room: number,
): void {
  const { lanes } = fleet;
  const of = fleet.classes[lanes.classOf[lane]!] ?? "";
  const name = shortLane(lanes.names[lane] ?? "", fleet.names[host]!);
  const rest = of === looked ? "" : of;
  const label = laneLabel(context, name, `${lanes.used[lane]}/${lanes.capacity[lane]}`, rest, room);
  context.fillText(label, x, y);
}

/** As much of a lane's name, amount and class as there is room for, the amount always. */
export function laneLabel(
  context: Context,
  name: string,
  amount: string,
  of: string,
  room: number,
): string {
  const left = (...parts: string[]) => room - context.measureText(parts.join(" ")).width;
  const shown = name && fitted(context, name, left("", amount));
  const rest = of && fitted(context, of, left(shown, amount, ""));
  return [shown, amount, rest].filter(Boolean).join(" ");
}

// Texts on the canvas, as much of each as there is room for.

type Context = CanvasRenderingContext2D;

const MOST_KEPT = 20_000;
const kept = new Map<string, string>();

/**
 * As much of a text as there is room for; of a name its end, by which hosts of a rack differ.
 * Kept, since measuring is what costs.
 */
export function fitted(context: Context, text: string, room: number, isEnd = false): string {
  const key = `${context.font} ${Math.floor(room)} ${isEnd} ${text}`;
  let found = kept.get(key);
  if (found === undefined) {
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(key, (found = cut(context, text, Math.floor(room), isEnd)));
  }
  return found;
}

function cut(context: Context, text: string, room: number, isEnd: boolean): string {
  // Marks of writing direction would turn what stands beside the name.
  const plain = text.replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  if (context.measureText(plain).width <= room) return plain;
  const points = [...plain];
  const part = (length: number) =>
    isEnd
      ? `…${points.slice(points.length - length).join("")}`
      : `${points.slice(0, length).join("")}…`;
  let low = 0;
  let high = Math.min(points.length, 200);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(part(middle)).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? part(low) : "";
}

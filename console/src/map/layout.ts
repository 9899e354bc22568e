// Where each host stands on the map: groups are blocks with a header, blocks stand on shelves.
// Everything is in pixels at scale 1, at which the whole fleet is in view.

export interface Block {
  group: number;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Hosts of this block are hosts[from] to hosts[to - 1] of the layout, row by row. */
  from: number;
  to: number;
  columns: number;
}

export interface Layout {
  width: number;
  height: number;
  cell: CellSize;
  /** Hosts in the order in which they are drawn. */
  hosts: Int32Array;
  x: Float32Array;
  y: Float32Array;
  blocks: Block[];
  /** Where in `hosts` a host is; -1 if it is not shown. */
  at: Int32Array;
}

export interface CellSize {
  width: number;
  height: number;
  gap: number;
  header: number;
}

const LARGEST = 190;
const WIDEST = 300;
const SMALLEST = 1.5;
const BLOCK_GAP = 10;
/** Room at the edges for the frame around a host. */
const MARGIN = 4;

/** How a cell of a height looks: larger ones are wide, for names and lanes. */
function cellOf(height: number): CellSize {
  const gap = height >= 6 ? Math.min(4, height / 8) : height >= 3 ? 0.5 : 0;
  const width =
    height >= 28 ? Math.min(WIDEST, height * 2.1) : height >= 14 ? height * 1.4 : height;
  return {
    width,
    height,
    gap,
    header: height >= 5 ? Math.max(10, Math.min(18, height)) : 2 * height,
  };
}

/**
 * Lay hosts out, in each group by their rank, so that all of them are in view, with cells as large as that allows: twenty
 * halvings between the smallest and the largest size, each a pass over the groups, not the hosts.
 */
export function layOut(
  hosts: Int32Array,
  groupOf: Int32Array,
  groupOrder: number[],
  rank: Int32Array,
  viewport: { width: number; height: number },
): Layout {
  const members = new Map<number, number[]>(groupOrder.map((group) => [group, []]));
  for (const host of hosts) members.get(groupOf[host]!)?.push(host);
  const counts = groupOrder.map((group) => members.get(group)!.length);
  const width = viewport.width - 2 * MARGIN;
  let low = SMALLEST;
  let high = LARGEST;
  for (let step = 0; step < 20; step++) {
    const middle = (low + high) / 2;
    if (shelves(counts, cellOf(middle), width).height + MARGIN <= viewport.height) low = middle;
    else high = middle;
  }
  const cell = cellOf(low >= 6 ? Math.floor(low) : low);
  const packed = shelves(counts, cell, width);
  return placed(packed, cell, groupOrder, members, rank, viewport);
}

interface Shelved {
  height: number;
  blocks: { x: number; y: number; width: number; height: number; columns: number }[];
}

function shelves(counts: number[], cell: CellSize, width: number): Shelved {
  const stepX = cell.width + cell.gap;
  const stepY = cell.height + cell.gap;
  const most = Math.max(1, Math.floor((width + cell.gap) / stepX));
  const gap = Math.min(BLOCK_GAP, cell.height);
  const blocks: Shelved["blocks"] = [];
  let x = MARGIN;
  let y = 0;
  let shelf = 0;
  for (const count of counts) {
    // About twice as wide as high, as screens are.
    const columns = Math.min(most, Math.max(1, Math.ceil(Math.sqrt((count * 2 * stepY) / stepX))));
    const blockWidth = columns * stepX - cell.gap;
    const blockHeight = cell.header + Math.ceil(count / columns) * stepY - cell.gap;
    if (x > MARGIN && x + blockWidth > width + MARGIN) {
      x = MARGIN;
      y += shelf + gap;
      shelf = 0;
    }
    blocks.push({ x, y, width: blockWidth, height: blockHeight, columns });
    x += blockWidth + gap;
    shelf = Math.max(shelf, blockHeight);
  }
  return { height: y + shelf, blocks };
}

function placed(
  packed: Shelved,
  cell: CellSize,
  groupOrder: number[],
  members: Map<number, number[]>,
  rank: Int32Array,
  viewport: { width: number; height: number },
): Layout {
  const total = groupOrder.reduce((sum, group) => sum + members.get(group)!.length, 0);
  const hosts = new Int32Array(total);
  const x = new Float32Array(total);
  const y = new Float32Array(total);
  const at = new Int32Array(rank.length).fill(-1);
  let next = 0;
  const blocks = packed.blocks.map((block, index) => {
    const group = groupOrder[index]!;
    const from = next;
    const own = members.get(group)!.sort((one, other) => rank[one]! - rank[other]!);
    for (const host of own) {
      const place = next - from;
      hosts[next] = host;
      x[next] = block.x + (place % block.columns) * (cell.width + cell.gap);
      y[next] =
        block.y + cell.header + Math.floor(place / block.columns) * (cell.height + cell.gap);
      at[host] = next++;
    }
    return { ...block, group, from, to: next };
  });
  return {
    width: viewport.width,
    height: packed.height + MARGIN,
    cell,
    hosts,
    x,
    y,
    blocks,
    at,
  };
}

/** The place in `hosts` under a point, or -1. */
export function placeAt(layout: Layout, x: number, y: number): number {
  const { cell } = layout;
  for (const block of layout.blocks) {
    if (x < block.x || y < block.y || x > block.x + block.width || y > block.y + block.height)
      continue;
    const column = Math.floor((x - block.x) / (cell.width + cell.gap));
    const row = Math.floor((y - block.y - cell.header) / (cell.height + cell.gap));
    if (row < 0 || column >= block.columns) return -1;
    const place = block.from + row * block.columns + column;
    return place < block.to ? place : -1;
  }
  return -1;
}

export type Direction = "left" | "right" | "up" | "down";

/** The nearest host in a direction, as one sees it; the same if there is none. Looks at every host. */
export function neighbour(layout: Layout, place: number, direction: Direction): number {
  const fromX = layout.x[place]!;
  const fromY = layout.y[place]!;
  const isSideways = direction === "left" || direction === "right";
  const sign = direction === "left" || direction === "up" ? -1 : 1;
  let best = place;
  let least = Infinity;
  for (let other = 0; other < layout.hosts.length; other++) {
    const alongX = (layout.x[other]! - fromX) * (isSideways ? sign : 1);
    const alongY = (layout.y[other]! - fromY) * (isSideways ? 1 : sign);
    const ahead = isSideways ? alongX : alongY;
    const aside = Math.abs(isSideways ? alongY : alongX);
    // Straight ahead beats near but aside.
    if (ahead > 0.01 && ahead + 3 * aside < least) {
      least = ahead + 3 * aside;
      best = other;
    }
  }
  return best;
}

// Numbers and times as people read them.

const COUNT = new Intl.NumberFormat("en");

export function count(value: number): string {
  return COUNT.format(value);
}

export function many(value: number, one: string, more = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : more}`;
}

/** In whole percent; what is not nothing and not all is never shown as if it were. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return "–";
  const share = (100 * part) / whole;
  if (share > 0 && share < 1) return "<1%";
  if (share > 99 && share < 100) return ">99%";
  return `${Math.round(share)}%`;
}

const STEPS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** How long, in its largest unit. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  for (const [size, unit] of STEPS) {
    if (whole >= size) return `${count(Math.floor(whole / size))} ${unit}`;
  }
  return "0 s";
}

export function ago(at: string, now = Date.now()): string {
  const seconds = (now - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds)) return at;
  return seconds < -1 ? `in ${duration(-seconds)}` : `${duration(seconds)} ago`;
}

/** Amounts by class, as the command line writes them: VCPU:8 MEMORY_MB:16384. */
export function amounts(of: Record<string, number>): string {
  return Object.entries(of)
    .map(([name, amount]) => `${name}:${amount}`)
    .join(" ");
}

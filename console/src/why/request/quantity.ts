// Quantities as Kubernetes and EMCO write them.

const BINARY: Record<string, number> = {
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
};
const DECIMAL: Record<string, number> = { k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };

export function bytesOf(text: string): number {
  const [, number = "", unit = ""] = /^([\d.eE+]+?)\s*([A-Za-z]*)$/.exec(text.trim()) ?? [];
  const plain = unit.replace(/B$/, "");
  return Number(number) * (BINARY[plain] ?? DECIMAL[plain] ?? 1);
}

export function cpusOf(text: string): number {
  return text.endsWith("m") ? Number(text.slice(0, -1)) / 1000 : Number(text);
}

export function wholeOf(text: string): number {
  return Math.ceil(Number(text)) || 0;
}

// Prints what a browser loads, gzipped, and fails where it is more than was promised:
// the first view and everything in all.
import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const FIRST_VIEW_KB = 60;
const ALL_KB = 100;
const FOLDER = new URL("../../src/dovetail/rest/console/static/", import.meta.url);

const manifest = JSON.parse(readFileSync(new URL("manifest.json", FOLDER), "utf8"));
const gzipped = (file) => gzipSync(readFileSync(new URL(file, FOLDER)), { level: 9 }).length / 1024;

/** A chunk, its styles and what it imports at once. */
function loaded(key, found = new Set()) {
  const chunk = manifest[key];
  if (found.has(chunk.file)) return found;
  found.add(chunk.file);
  for (const style of chunk.css ?? []) found.add(style);
  for (const other of chunk.imports ?? []) loaded(other, found);
  return found;
}

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
// The map is the first view: it is loaded by the entry at once, though as a chunk of its own.
const map = Object.keys(manifest).find((key) => key.endsWith("fleet/FleetView.tsx"));
const first = map ? loaded(map, loaded(entry)) : loaded(entry);
const all = readdirSync(new URL("assets/", FOLDER)).map((name) => `assets/${name}`);

let firstKb = 0;
let allKb = 0;
for (const file of all.sort()) {
  const size = gzipped(file);
  allKb += size;
  if (first.has(file)) firstKb += size;
  console.log(
    `${size.toFixed(1).padStart(7)} KB  ${file}${first.has(file) ? "  (first view)" : ""}`,
  );
}
console.log(
  `${firstKb.toFixed(1).padStart(7)} KB  gzipped for the first view, of ${FIRST_VIEW_KB}`,
);
console.log(`${allKb.toFixed(1).padStart(7)} KB  gzipped in all, of ${ALL_KB}`);
if (firstKb > FIRST_VIEW_KB || allKb > ALL_KB) process.exit(1);

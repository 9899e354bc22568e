// Colours of the map, for light and dark. Steps of a ramp differ in lightness, so that they can be
// told apart in grey; what must not be missed has a mark as well (`marks.ts`).
import { signal } from "@preact/signals";

export interface Theme {
  surface: string;
  card: string;
  line: string;
  ink: string;
  quiet: string;
  cursor: string;
  none: string;
  mark: string;
  /** Farther from the surface than any other colour. */
  strongest: string;
  used: string[];
  fragmentation: string[];
  holder: string[];
  /** fits, not now, never, not looked at: apart in lightness as far as four can be */
  verdict: string[];
}

export const LIGHT: Theme = {
  surface: "#f6f7f9",
  card: "#ffffff",
  line: "#c9d0d9",
  ink: "#1c2530",
  quiet: "#56616f",
  cursor: "#b4005a",
  none: "#e3e6ea",
  mark: "#ffffff",
  strongest: "#000000",
  used: [
    "#dbe9f6",
    "#c3daef",
    "#a5c8e6",
    "#82b2da",
    "#5e99cb",
    "#4080b8",
    "#2b679f",
    "#1b4f84",
    "#0f3866",
  ],
  fragmentation: [
    "#f8ead9",
    "#f2d6b4",
    "#eabf8c",
    "#dfa362",
    "#cf863d",
    "#b66a25",
    "#965216",
    "#743d0e",
    "#532a08",
  ],
  holder: ["#4477aa", "#aa5522", "#227755", "#8855aa", "#997700", "#bb4466", "#3a8a99", "#6b7280"],
  verdict: ["#14623f", "#c98a1f", "#c3c9d1", "#f1f3f5"],
};

export const DARK: Theme = {
  surface: "#12171d",
  card: "#1a2129",
  line: "#3a4653",
  ink: "#e4e9ef",
  quiet: "#9eabb9",
  cursor: "#ff7ab8",
  none: "#232b34",
  mark: "#0c1116",
  strongest: "#ffffff",
  used: [
    "#1f3448",
    "#254560",
    "#2b5778",
    "#326a92",
    "#3d7fac",
    "#5196c3",
    "#6fadd5",
    "#94c5e5",
    "#bcddf3",
  ],
  fragmentation: [
    "#3a2a18",
    "#513a1e",
    "#6c4c24",
    "#895f2a",
    "#a67433",
    "#c08a42",
    "#d5a35f",
    "#e6bf88",
    "#f4dbb6",
  ],
  holder: ["#77aadd", "#ee8866", "#44bb99", "#bb99dd", "#ddcc55", "#ff99aa", "#66ccdd", "#9aa3ad"],
  verdict: ["#a5f0cb", "#c48a24", "#47515d", "#1c232b"],
};

const dark = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal(dark.matches ? DARK : LIGHT);
dark.addEventListener("change", () => (theme.value = dark.matches ? DARK : LIGHT));

export const STEPS = LIGHT.used.length;

/** A share of 0 to 1 as a step; only what is all used is the last. */
export function stepOf(share: number): number {
  return share >= 1 ? STEPS - 1 : Math.max(0, Math.min(STEPS - 2, Math.floor(share * (STEPS - 1))));
}

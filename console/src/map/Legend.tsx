// What colours and marks mean. Samples are drawn with the same code as the map.
import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { STEPS, theme } from "./colours";
import { count } from "../ui/numbers";
import { drawMark } from "./marks";
import { BARRED, CROSSED, DOTTED, HALVED, HATCHED, letterOf, NO_MARK, TICKED, type Palette } from "./paint";

interface Sample {
  words: string;
  step: number;
  mark: number;
  letter?: string;
}

const STATES: Sample[] = [
  { words: "full", step: STEPS - 1, mark: BARRED },
  { words: "drained", step: 1, mark: HATCHED },
  { words: "dead", step: -1, mark: CROSSED },
];

const VERDICTS: Sample[] = [
  { words: "fits", step: 0, mark: TICKED },
  { words: "not now", step: 1, mark: HALVED },
  { words: "never", step: 2, mark: NO_MARK },
  { words: "not looked at", step: 3, mark: DOTTED },
];

export function Legend({
  palette,
  of,
  holders = [],
  counts = [],
}: {
  palette: Palette;
  of: string;
  holders?: string[];
  /** How many hosts have each verdict. */
  counts?: number[];
}) {
  if (palette === "verdict") {
    const counted = VERDICTS.map((each, at) => ({
      ...each,
      words: `${each.words}: ${count(counts[at] ?? 0)}`,
    }));
    return <Samples palette={palette} samples={[...counted, ...STATES.slice(2)]} />;
  }
  if (palette === "holder") {
    const named = holders.map((words, step) => ({
      words,
      step,
      mark: NO_MARK,
      letter: letterOf(step),
    }));
    const nobody = { words: "nobody", step: -1, mark: NO_MARK };
    return <Samples palette={palette} samples={[...named, nobody, ...STATES.slice(1)]} />;
  }
  return (
    <div class="legend">
      <span>{palette === "used" ? `${of}: all free` : "not fragmented"}</span>
      <Ramp palette={palette} />
      <span>{palette === "used" ? "none free" : "fragmented"}</span>
      <Samples palette={palette} samples={STATES} />
    </div>
  );
}

function Samples({ palette, samples }: { palette: Palette; samples: Sample[] }) {
  return (
    <ul class="legend">
      {samples.map((each, at) => (
        <li key={at}>
          <Swatch palette={palette} sample={each} /> <bdi class="name">{each.words}</bdi>
        </li>
      ))}
    </ul>
  );
}

function Swatch({ palette, sample }: { palette: Palette; sample: Sample }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useSignalEffect(() => {
    const colours = theme.value;
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.setTransform(2, 0, 0, 2, 0, 0);
    context.fillStyle = colours[palette][sample.step] ?? colours.none;
    context.fillRect(0, 0, 14, 14);
    if (sample.mark !== NO_MARK)
      drawMark(context, colours, sample.mark, { x: 0, y: 0, width: 14, height: 14 });
    if (sample.letter) {
      context.fillStyle = colours.mark;
      context.font = "600 10px system-ui, sans-serif";
      context.textAlign = "center";
      context.fillText(sample.letter, 7, 11);
    }
  });
  return <canvas class="swatch" width={28} height={28} ref={canvas} aria-hidden="true" />;
}

function Ramp({ palette }: { palette: "used" | "fragmentation" }) {
  return (
    <svg class="ramp" viewBox={`0 0 ${STEPS} 1`} preserveAspectRatio="none" aria-hidden="true">
      {theme.value[palette].map((colour, step) => (
        <rect key={step} x={step} width={1.02} height={1} fill={colour} />
      ))}
    </svg>
  );
}

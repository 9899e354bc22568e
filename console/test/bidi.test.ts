import { describe, expect, it } from "vitest";
import { isolated, piecesOf } from "../src/ui/bidi";

const RLO = "\u202e";
const RLI = "\u2067";
const PDI = "\u2069";
const FSI = "\u2068";
const LRM = "\u200e";

describe("a name in a text", () => {
  it("is isolated, whatever it opens or closes", () => {
    expect(isolated("rack1-host1")).toBe("rack1-host1");
    expect(isolated(`${RLO}bad`)).toBe(`${LRM}${FSI}${RLO}bad${PDI}`);
    expect(isolated(`${RLI}bad`)).toBe(`${LRM}${FSI}${RLI}bad${PDI}${PDI}`);
    expect(isolated(`${PDI}${RLO}bad`)).toBe(`${LRM}${FSI}${FSI}${PDI}${RLO}bad${PDI}`);
  });

  it("is found in a sentence, the longest first, and others lose their controls", () => {
    const name = `${RLO}a+(b`;
    const found = piecesOf(`${name}/dev: 12 of 48, ${name}, ${RLI}c`, [name, `${name}/dev`, null]);
    expect(found.map((each) => each.text)).toEqual([`${name}/dev`, ": 12 of 48, ", name, ", c"]);
    expect(found.map((each) => each.isName)).toEqual([true, false, true, false]);
    expect(piecesOf("host1: 12", ["host1"])).toEqual([{ text: "host1: 12", isName: false }]);
  });
});

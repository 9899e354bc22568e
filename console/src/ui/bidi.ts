// Names bring their writing direction with them, also such that never give it back. In sentences they keep it to
// themselves, so that the numbers behind them are read as they are written.

const OPENING = /[\u2066-\u2068]/;
const CLOSING = "\u2069";
const FIRST_STRONG = "\u2068";
/** A sentence that begins with a name is still one of ours, where its direction is taken from its first letter. */
const FROM_LEFT = "\u200e";
const CONTROLS = /[\u202a-\u202e\u2066-\u2069]/g;
const PLAIN = /^[\x20-\x7e]*$/;

/** A name for where there is only text (titles, what is spoken): isolated, whatever it opens or closes itself. */
export function isolated(name: string): string {
  if (PLAIN.test(name)) return name;
  let open = 0;
  let stray = 0;
  for (const letter of name) {
    if (OPENING.test(letter)) open++;
    else if (letter === CLOSING && open > 0) open--;
    else if (letter === CLOSING) stray++;
  }
  return FROM_LEFT + FIRST_STRONG.repeat(1 + stray) + name + CLOSING.repeat(1 + open);
}

export interface Piece {
  text: string;
  isName: boolean;
}

/**
 * A sentence taken apart at names that need a direction of their own. Controls elsewhere in it belong to a name that
 * is not known here: the sentence goes on without them.
 */
export function piecesOf(sentence: string, names: readonly (string | null | undefined)[]): Piece[] {
  const known = [...new Set(names)].filter((each): each is string => !!each && !PLAIN.test(each));
  if (known.length === 0) return [{ text: sentence.replace(CONTROLS, ""), isName: false }];
  known.sort((one, other) => other.length - one.length);
  const pattern = known.map((each) => each.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");
  return sentence
    .split(new RegExp(`(${pattern})`))
    .map((text, at) =>
      at % 2 === 1 ? { text, isName: true } : { text: text.replace(CONTROLS, ""), isName: false },
    )
    .filter((each) => each.text !== "");
}

// Reads as much of YAML as manifests are written in: block and flow collections, plain and quoted
// scalars, literal blocks, comments, several documents. No anchors, tags or merge keys. One pass
// over the lines; nesting follows the indentation.

export type Yaml = string | number | boolean | null | Yaml[] | { [key: string]: Yaml };

export class BadYaml extends Error {}

interface Line {
  indent: number;
  text: string;
  raw: string;
}

export function yamlDocuments(source: string): Yaml[] {
  return source
    .split(/^---.*$/m)
    .map((text) => new Reader(linesOf(text)).document())
    .filter((each) => each !== null);
}

function linesOf(source: string): Line[] {
  return source.split(/\r?\n/).map((raw) => {
    const text = withoutComment(raw);
    return { indent: text.length - text.trimStart().length, text: text.trim(), raw };
  });
}

/** A # begins a comment where a space is before it, outside of quotes. */
function withoutComment(raw: string): string {
  let quote = "";
  for (let at = 0; at < raw.length; at++) {
    const letter = raw[at]!;
    if (quote) quote = letter === quote ? "" : quote;
    else if (letter === '"' || (letter === "'" && !/\w/.test(raw[at - 1] ?? ""))) quote = letter;
    else if (letter === "#" && (at === 0 || /\s/.test(raw[at - 1]!)))
      return raw.slice(0, at).trimEnd();
  }
  return raw.trimEnd();
}

const KEY = /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'#{}[\],&*!|>][^#]*?)\s*:(?:\s+(.*))?$/;

class Reader {
  private at = 0;

  constructor(private readonly lines: Line[]) {}

  document(): Yaml {
    this.skip();
    const first = this.lines[this.at];
    if (!first) return null;
    const found = this.block(first.indent);
    this.skip();
    if (this.at < this.lines.length)
      throw new BadYaml(`line ${this.at + 1} is not as it should be`);
    return found;
  }

  private skip(): void {
    while (this.at < this.lines.length && this.lines[this.at]!.text === "") this.at++;
  }

  private block(indent: number): Yaml {
    const line = this.lines[this.at]!;
    if (line.text === "-" || line.text.startsWith("- ")) return this.sequence(indent);
    if (KEY.test(line.text)) return this.mapping(indent);
    this.at++;
    return flow(this.gathered(line.text));
  }

  private sequence(indent: number): Yaml[] {
    const found: Yaml[] = [];
    for (this.skip(); ; this.skip()) {
      const line = this.lines[this.at];
      if (!line || line.indent !== indent || !/^-(\s|$)/.test(line.text)) return found;
      const rest = line.text.slice(1).trimStart();
      if (rest === "") {
        this.at++;
        found.push(this.below(indent));
      } else {
        // What follows the dash is a block of its own, as if the dash were a space.
        const inner = indent + line.text.length - rest.length;
        this.lines[this.at] = { ...line, indent: inner, text: rest };
        found.push(this.block(inner));
      }
    }
  }

  private mapping(indent: number): Yaml {
    const found: { [key: string]: Yaml } = {};
    for (this.skip(); ; this.skip()) {
      const line = this.lines[this.at];
      const [, key, value] = (line?.indent === indent && KEY.exec(line.text)) || [];
      if (key === undefined) return found;
      this.at++;
      // Its own property, whatever it is called.
      Object.defineProperty(found, String(scalar(key)), {
        value: this.valueOf(value ?? "", indent),
        enumerable: true,
      });
    }
  }

  private valueOf(text: string, indent: number): Yaml {
    if (/^[|>][+-]?$/.test(text)) return this.literal(indent, text[0] === ">");
    if (text !== "") return flow(this.gathered(text));
    return this.below(indent);
  }

  /** A block below a key or a dash; sequences may stand as far left as their key. */
  private below(indent: number): Yaml {
    this.skip();
    const next = this.lines[this.at];
    if (!next) return null;
    if (next.indent > indent) return this.block(next.indent);
    return next.indent === indent && /^-(\s|$)/.test(next.text) ? this.sequence(indent) : null;
  }

  private literal(indent: number, isFolded: boolean): string {
    const found: string[] = [];
    while (this.at < this.lines.length) {
      const { raw } = this.lines[this.at]!;
      if (raw.trim() !== "" && raw.length - raw.trimStart().length <= indent) break;
      found.push(raw.trim());
      this.at++;
    }
    return found.join(isFolded ? " " : "\n").trim();
  }

  /** Flow collections may go on over lines. */
  private gathered(text: string): string {
    let whole = text;
    while (/^[[{]/.test(whole) && depth(whole) > 0 && this.at < this.lines.length) {
      whole += ` ${this.lines[this.at++]!.text}`;
    }
    return whole;
  }
}

function depth(text: string): number {
  const bare = text.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, "");
  return (bare.match(/[[{]/g)?.length ?? 0) - (bare.match(/[\]}]/g)?.length ?? 0);
}

const TOKEN =
  /\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[[\]{},]|:(?=[\s,[\]{}]|$)|(?:[^\s,[\]{}:]|:(?![\s,[\]{}]|$)|\s+(?=[^\s,[\]{}:]))+)/y;

function flow(text: string): Yaml {
  if (!/^[[{]/.test(text)) return scalar(text);
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(text); found; found = TOKEN.exec(text)) tokens.push(found[1]!);
  let at = 0;
  const value = (): Yaml => {
    const token = tokens[at++];
    if (token === "[") return list();
    if (token === "{") return map();
    if (token === undefined || /^[\]},:]$/.test(token)) throw new BadYaml(`cannot read ${text}`);
    return scalar(token);
  };
  const list = (): Yaml[] => {
    const found: Yaml[] = [];
    while (tokens[at] !== "]") {
      found.push(value());
      if (tokens[at] === ",") at++;
    }
    at++;
    return found;
  };
  const map = (): Yaml => {
    const found: [string, Yaml][] = [];
    while (tokens[at] !== "}") {
      const key = String(value());
      if (tokens[at] === ":") at++;
      found.push([key, tokens[at] === "," || tokens[at] === "}" ? null : value()]);
      if (tokens[at] === ",") at++;
    }
    at++;
    return Object.fromEntries(found);
  };
  return value();
}

function scalar(text: string): Yaml {
  if (text.startsWith('"')) {
    try {
      return JSON.parse(text) as string;
    } catch {
      throw new BadYaml(`cannot read ${text}`);
    }
  }
  if (text.startsWith("'")) return text.slice(1, -1).replaceAll("''", "'");
  if (text === "" || text === "null" || text === "~") return null;
  if (text === "true" || text === "false") return text === "true";
  return /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(text) ? Number(text) : text;
}

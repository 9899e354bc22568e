// The server's own REST, as the caller of the session: every request goes through /console/api.

const API = "/console/api";

/** A refusal, with the words that the server found for it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly body: unknown,
  ) {
    super(message);
  }
}

interface Options {
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

export async function get<T>(path: string, options: Options = {}): Promise<T> {
  return (await answer(path, { ...options })).json() as Promise<T>;
}

export async function send<T>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body?: unknown,
  options: Options = {},
): Promise<T | undefined> {
  const headers: Record<string, string> = { ...options.headers };
  const request: RequestInit = { ...options, method, headers };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  const reply = await answer(path, request);
  const text = await reply.text();
  return text === "" ? undefined : (JSON.parse(text) as T);
}

/** The reply, if it is a good one. Also where 304 is one: with `if-none-match`. */
export async function answer(path: string, init: RequestInit): Promise<Response> {
  // No form of another site can set this header: the server wants it on whatever writes.
  const headers = { "x-dovetail-console": "1", accept: "application/json", ...init.headers };
  const reply = await fetch(path.startsWith("/console/") ? path : API + path, {
    ...init,
    headers,
    credentials: "same-origin",
  });
  if (reply.ok || reply.status === 304) return reply;
  if (reply.status === 401) toLogin();
  throw await problemOf(reply);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function problemOf(reply: Response): Promise<Problem> {
  const text = await reply.text();
  let body: unknown = text;
  let words = text.trim();
  try {
    body = JSON.parse(text);
    words = detailOf(body) ?? words;
  } catch {
    // EMCO's door answers with plain text.
  }
  return new Problem(reply.status, words || `${reply.status} ${reply.statusText}`, body);
}

/** Problem details as of RFC 9457, or Placement's list of errors. */
function detailOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { detail, title, errors } = body as {
    detail?: string;
    title?: string;
    errors?: { detail?: string }[];
  };
  return detail ?? errors?.[0]?.detail ?? title;
}

function toLogin(): void {
  const here = location.pathname + location.search;
  location.assign(`/console/login?next=${encodeURIComponent(here)}`);
}

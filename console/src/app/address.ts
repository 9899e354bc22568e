// The address bar is the state that can be shared: views read it and write it.
import { batch, signal } from "@preact/signals";

export const ROOT = "/console";

export const path = signal(trimmed(location.pathname));
export const params = signal(new URLSearchParams(location.search));

/** These are forms and redirects of the server's: the browser goes there itself. */
const SERVER_ONLY = /^\/console\/(login|session|oidc|api|static|me)\b/;

export function go(href: string): void {
  history.pushState(null, "", href);
  read();
  scrollTo(0, 0);
}

/** Change parameters of this view; without a new step back, since it is the same page. */
export function setParams(changes: Record<string, string | undefined>, step = false): void {
  const next = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value) next.set(key, value);
    else next.delete(key);
  }
  const text = next.toString();
  const href = location.pathname + (text && `?${text}`);
  if (href === location.pathname + location.search) return;
  if (step) history.pushState(null, "", href);
  else history.replaceState(null, "", href);
  read();
}

export function href(of: string, query: Record<string, string | undefined> = {}): string {
  const kept = Object.entries(query).filter((each): each is [string, string] => !!each[1]);
  const text = new URLSearchParams(kept).toString();
  return ROOT + of + (text && `?${text}`);
}

function read(): void {
  batch(() => {
    path.value = trimmed(location.pathname);
    params.value = new URLSearchParams(location.search);
  });
}

function trimmed(pathname: string): string {
  return pathname.replace(/\/+$/, "") || "/";
}

/** Links of the page change the view in place; whoever wants a new tab gets one. */
export function followLinks(): void {
  addEventListener("popstate", read);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || link.target || link.download) return;
    const to = new URL(link.href);
    if (to.origin !== location.origin || to.hash || SERVER_ONLY.test(to.pathname)) return;
    if (to.pathname !== ROOT && !to.pathname.startsWith(`${ROOT}/`)) return;
    event.preventDefault();
    go(to.pathname + to.search);
  });
}

// Shows the view that the address names in <main>, in place of what the server rendered.
import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentType } from "preact";
import { useRef } from "preact/hooks";
import { wordsOf } from "./api";
import { path } from "./address";
import { me, unknownMe } from "./me";
import { viewOf, type View, type ViewProps } from "./views";
import { isolated } from "../ui/bidi";
import { Name } from "../ui/Name";
import { many } from "../ui/numbers";
import { setTitle } from "../ui/title";
import { Loading, NotLoaded } from "../ui/Loading";

export interface Shown {
  at: string;
  view: View;
  Component: ComponentType<ViewProps>;
  rest: string[];
}

/** The view of an address with its code; none if there is no such page. */
export async function loaded(at: string): Promise<Shown | undefined> {
  const found = viewOf(at);
  return found && { at, view: found.view, Component: await found.view.load(), rest: found.rest };
}

/**
 * After an upgrade, code that an open page asks for is no longer there under its name; the page, loaded anew, has the
 * new names. A page that has just been loaded has them already: it says what is wrong, and is not loaded again. One
 * whose server is away stays as well.
 */
async function isServed(at: string): Promise<boolean> {
  return fetch(at, { credentials: "same-origin" }).then(
    (reply) => reply.ok,
    () => false,
  );
}

/** `first` is the view that was loaded before there was a page. */
export function App({ first }: { first: Shown | undefined }) {
  const shown = useSignal(first);
  const failed = useSignal<string | undefined>(undefined);
  const arrival = useRef(true);
  useSignalEffect(() => {
    const at = path.value;
    markNavigation(at);
    const isArrival = arrival.current;
    arrival.current = false;
    if (shown.peek()?.at === at) {
      failed.value = undefined;
      return;
    }
    loaded(at).then(
      (next) => {
        if (path.peek() !== at) return;
        // Before the view is there, which may know a better one.
        setTitle();
        failed.value = next ? undefined : "There is no such page.";
        // Who came by a link goes on reading where the new view begins.
        document.getElementById("view")?.focus({ preventScroll: true });
        shown.value = next;
      },
      async (error: unknown) => {
        const isOld = !isArrival && (await isServed(at));
        if (path.peek() !== at) return;
        if (isOld) location.reload();
        else failed.value = wordsOf(error);
      },
    );
  });
  const problem = failed.value ?? unknownMe.value;
  if (problem) return <NotLoaded title="Dovetail" words={problem} />;
  const now = shown.value;
  if (!now || !me.value) return <Loading title="Dovetail" what="the page" />;
  if (now.view.needs && me.value.may[now.view.needs] === false)
    return <NotForYou view={now.view} />;
  return <now.Component key={now.at} rest={now.rest} />;
}

function NotForYou({ view }: { view: View }) {
  const { user, roles } = me.value!;
  return (
    <div>
      <h1>{view.title}</h1>
      <p class="refused" role="alert">
        This is not shown to <Name of={user} empty="you" /> with {many(roles.length, "role")}
        {roles.length > 0 && (
          <>
            {" "}
            (<Name of={roles.map(isolated).join(", ")} />)
          </>
        )}
        . Who runs this server can tell which role it takes.
      </p>
    </div>
  );
}

/** The header is the server's; which of its links is the current one changes with the view. */
function markNavigation(at: string): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("header nav a[href]")) {
    const to = new URL(link.href).pathname.replace(/\/+$/, "");
    const isHere = to === at || (to.split("/").length > 2 && at.startsWith(`${to}/`));
    if (isHere && !link.classList.contains("brand")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

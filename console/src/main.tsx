// Begins: takes over <main id="view"> of the page that the server rendered.
import { render } from "preact";
import { App, loaded } from "./app/App";
import { followLinks, path } from "./app/address";
import { learnMe, may } from "./app/me";
import { refresh } from "./map/live";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/fleet.css";
import "./styles/why.css";
import "./styles/ledger.css";
import "./styles/sold.css";

/** Views that begin with the map. */
const MAPPED = /^\/console(\/why)?\/?$/;

async function begin(main: HTMLElement): Promise<void> {
  followLinks();
  // The fleet is asked for while the code of the view is still on its way.
  if (MAPPED.test(location.pathname) && may("map")) void refresh();
  // What the server rendered stays until there is something to show instead.
  const [first] = await Promise.allSettled([loaded(path.peek()), learnMe()]);
  const isInside = main.contains(document.activeElement);
  main.replaceChildren();
  main.dataset.taken = "";
  render(<App first={first.status === "fulfilled" ? first.value : undefined} />, main);
  // Who read on by keyboard meanwhile goes on where the view begins, not at the top of the page.
  if (isInside) main.focus({ preventScroll: true });
}

const main = document.getElementById("view");
// The login page has a form of the server's, which needs no script.
if (main && !location.pathname.startsWith("/console/login")) void begin(main);

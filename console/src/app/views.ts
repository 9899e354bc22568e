// Which view an address shows. Each is a chunk of its own, loaded when it is first looked at.
import type { ComponentType } from "preact";
import { ROOT } from "./address";

export interface ViewProps {
  /** What the address names below the view: a host's UUID, say. */
  rest: string[];
}

export interface View {
  title: string;
  /** What a caller has to be allowed to see anything there. */
  needs?: string;
  load: () => Promise<ComponentType<ViewProps>>;
}

const VIEWS: Record<string, View> = {
  "": {
    title: "Fleet",
    needs: "map",
    load: async () => (await import("../fleet/FleetView")).FleetView,
  },
  why: {
    title: "Why / why not",
    needs: "explain",
    load: async () => (await import("../why/WhyView")).WhyView,
  },
  hosts: {
    title: "Host",
    needs: "holders",
    load: async () => (await import("../host/HostView")).HostView,
  },
  holders: {
    title: "Holders",
    needs: "holders",
    load: async () => (await import("../ledger/HoldersView")).HoldersView,
  },
  decisions: {
    title: "Decisions",
    needs: "explain",
    load: async () => (await import("../ledger/DecisionsView")).DecisionsView,
  },
  audit: {
    title: "Audit",
    needs: "audit",
    load: async () => (await import("../ledger/AuditView")).AuditView,
  },
  classes: {
    title: "Classes",
    needs: "classes",
    load: async () => (await import("../sold/ClassesView")).ClassesView,
  },
  machines: {
    title: "Machines",
    needs: "holders",
    load: async () => (await import("../sold/MachinesView")).MachinesView,
  },
  intents: {
    title: "Intents",
    needs: "intents",
    load: async () => (await import("../sold/IntentsView")).IntentsView,
  },
};

export function viewOf(path: string): { view: View; rest: string[] } | undefined {
  const [name = "", ...rest] = path.slice(ROOT.length + 1).split("/");
  const view = VIEWS[name];
  return view && { view, rest: rest.map(decodeURIComponent) };
}

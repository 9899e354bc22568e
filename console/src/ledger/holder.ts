// Holders as GET /dovetail/v1/consumers tells them.

export interface HeldUnits {
  provider: string;
  name: string | null;
  host: string | null;
  host_uuid: string;
  resources: Record<string, number>;
}

export interface Holder {
  uuid: string;
  /** The name of its pod in the namespace `project`; null: not known, or it is none. */
  pod: string | null;
  type: string | null;
  project: string;
  user: string;
  since: string | null;
  holds: HeldUnits[];
}

export interface HoldersPage {
  consumers: Holder[];
  next?: string | number | null;
}

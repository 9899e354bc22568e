// A host as GET /dovetail/v1/hosts/{uuid} tells it.
import type { Decision } from "../ledger/decision";

export interface HostInventory {
  total: number;
  reserved: number;
  allocation_ratio: number;
  min_unit: number;
  max_unit: number;
  step_size: number;
  capacity: number;
  used: number;
}

export interface UnitHolder {
  consumer: string;
  /** The name of its pod in the namespace `project`; null: not known, or it is none. */
  pod: string | null;
  type: string | null;
  project: string;
  user: string;
  since: string | null;
  resources: Record<string, number>;
}

export interface HostProvider {
  uuid: string;
  name: string | null;
  parent: string | null;
  depth: number;
  traits: string[];
  aggregates: string[];
  attributes: Record<string, string>;
  inventories: Record<string, HostInventory>;
  holders: UnitHolder[];
}

/** A pod that was seen on a node of a registered cluster. */
export interface PodOnHost {
  uid: string;
  namespace: string;
  name: string;
  app: string | null;
  resources: Record<string, number>;
  /** Units, by the name of the device. */
  devices: Record<string, number>;
}

export interface HostDocument {
  uuid: string;
  name: string | null;
  providers: HostProvider[];
  pods: PodOnHost[];
  decisions: Decision[];
}

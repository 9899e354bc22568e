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

export interface HostDocument {
  uuid: string;
  name: string | null;
  providers: HostProvider[];
  decisions: Decision[];
}

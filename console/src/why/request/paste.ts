// Turns what people have at hand into a request: a query, a command, a pod or whatever makes pods, hardware
// intents, or a Machine. Names of resources become classes that this fleet has.
import { bytesOf, cpusOf, wholeOf } from "./quantity";
import {
  emptyGroup,
  emptyRequest,
  queryOf,
  requestOf,
  type FormRequest,
  type RequestGroup,
} from "./request";
import { BadYaml, yamlDocuments, type Yaml } from "./yaml";

export interface Pasted {
  query: string;
  /** What was recognised, and what of it a request for hosts does not say. */
  words: string;
}

export class NotUnderstood extends Error {}

type Table = { [key: string]: Yaml };

export function pasted(text: string, classes: string[]): Pasted {
  const query = queryIn(text);
  if (query !== undefined)
    return { query: queryOf(requestOf(query)), words: "A candidates query." };
  const documents = documentsOf(text).filter(isTable);
  const maker = new Maker(classes);
  for (const read of [podIn, machineIn, intentsIn]) {
    const found = read(documents, maker);
    if (found) return found;
  }
  throw new NotUnderstood(`${whatItIs(documents)} ${RIGHT}`);
}

const RIGHT =
  "Right would be a query (resources=VCPU:8,MEMORY_MB:16384), a pod or what makes pods (with " +
  "resources.requests or limits in its containers), hardware intents (with spec.resource), or a Machine " +
  "(with spec.machineTypes).";

/** What is wrong with something that was read, and asks for nothing. */
function whatItIs(documents: Table[]): string {
  const pods = documents.filter((each) => podSpec(each));
  const [named] = [...pods, ...documents.filter((each) => typeof each.kind === "string")];
  if (!named) return "This is nothing that asks for hardware.";
  const title = `${String(named.kind ?? "Pod")} ${String(under(named, "metadata", "name") ?? "")}`.trim();
  if (pods.length > 0) return `${title} has no container that asks for anything.`;
  return named.kind === "Machine"
    ? `${title} has no type of machines.`
    : `${title} does not ask for hardware.`;
}

/** A query by itself, in an address, or in quotes behind a command. */
function queryIn(text: string): string | undefined {
  const found = /(?:^|[?'"\s&])((?:resources|required|class)[\w-]*=[^\s'"]+)/.exec(text.trim());
  if (!found) return undefined;
  const start = text.indexOf(found[1]!);
  const before = /[?'"]([^?'"\s]*)$/.exec(text.slice(0, start));
  return (before?.[1] ?? "") + found[1]!;
}

function documentsOf(text: string): Yaml[] {
  const trimmed = text.trim();
  try {
    if (!trimmed.startsWith("{") && !trimmed.startsWith("[")) return yamlDocuments(text);
    const found = JSON.parse(trimmed) as Yaml;
    return Array.isArray(found) ? found : [found];
  } catch (error) {
    if (error instanceof BadYaml)
      throw new NotUnderstood(`This cannot be read as YAML: ${error.message}. ${RIGHT}`);
    if (error instanceof SyntaxError)
      throw new NotUnderstood(`This cannot be read as JSON: ${error.message}. ${RIGHT}`);
    throw error;
  }
}

function isTable(value: Yaml | undefined): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function under(value: Yaml | undefined, ...path: string[]): Yaml | undefined {
  return path.reduce<Yaml | undefined>((now, key) => (isTable(now) ? now[key] : undefined), value);
}

function listIn(value: Yaml | undefined, ...path: string[]): Table[] {
  const found = under(value, ...path);
  return Array.isArray(found) ? found.filter(isTable) : [];
}

const DEVICE_CLASS = "resourceclass.dovetail.dev/";

/** Amounts as classes of the fleet: those of Kubernetes nodes where it has them, else Placement's. */
class Maker {
  private readonly known: Set<string>;

  constructor(classes: string[]) {
    this.known = new Set(classes);
  }

  add(group: RequestGroup, name: string, quantity: Yaml, unit = ""): void {
    const [found, amount] = this.amountOf(name, quantity, unit);
    if (!found || amount <= 0) return;
    const same = group.amounts.find((each) => each.class === found);
    if (same) same.amount += amount;
    else group.amounts.push({ class: found, amount });
  }

  private amountOf(name: string, quantity: Yaml, unit: string): [string, number] {
    const text = String(quantity) + unit;
    if (name === "cpu") {
      return this.known.has("CUSTOM_MILLICPU")
        ? ["CUSTOM_MILLICPU", Math.ceil(cpusOf(text) * 1000)]
        : [this.first("VCPU", "PCPU"), Math.ceil(cpusOf(text))];
    }
    if (name === "memory") {
      return this.known.has("CUSTOM_MEMORY_BYTES")
        ? ["CUSTOM_MEMORY_BYTES", Math.ceil(bytesOf(text))]
        : ["MEMORY_MB", Math.ceil(bytesOf(text) / 2 ** 20)];
    }
    if (name === "ephemeral-storage") return ["DISK_GB", Math.ceil(bytesOf(text) / 2 ** 30)];
    return [this.extended(name), wholeOf(text)];
  }

  /** nvidia.com/gpu is CUSTOM_NVIDIA_COM_GPU, or what the fleet calls whole GPUs. */
  private extended(name: string): string {
    const custom = `CUSTOM_${name.toUpperCase().replace(/[^A-Z0-9]+/g, "_")}`;
    if (this.known.has(custom) || !/gpu/i.test(name)) return custom;
    return this.first("PGPU", "VGPU", custom);
  }

  private first(...names: string[]): string {
    return names.find((each) => this.known.has(each)) ?? names[0]!;
  }
}

// -- pods ------------------------------------------------------------------------------------------

function podIn(documents: Table[], maker: Maker): Pasted | undefined {
  for (const document of documents) {
    const spec = podSpec(document);
    if (!spec) continue;
    const request = podRequest(spec, maker);
    if (request.groups.length === 0) continue;
    const kind = String(document.kind ?? "Pod");
    const name = String(under(document, "metadata", "name") ?? "");
    const left = ["nodeSelector", "affinity", "tolerations"].filter(
      (key) => spec[key] !== undefined,
    );
    const note = left.length > 0 ? ` Not looked at here: ${left.join(", ")}.` : "";
    return { query: queryOf(request), words: `One pod of ${kind} ${name}.${note}` };
  }
  return undefined;
}

function podSpec(document: Table): Table | undefined {
  for (const path of [
    ["spec"],
    ["spec", "template", "spec"],
    ["spec", "jobTemplate", "spec", "template", "spec"],
  ]) {
    const spec = under(document, ...path);
    if (isTable(spec) && Array.isArray(spec.containers)) return spec;
  }
  return undefined;
}

/** Containers run at once, so that their requests add up; limits count where nothing is requested. */
function podRequest(spec: Table, maker: Maker): FormRequest {
  const request = emptyRequest();
  const own = emptyGroup("");
  const devices = new Map<string, number>();
  const sums = new Map<string, number>();
  for (const container of listIn(spec, "containers")) {
    const limits = under(container, "resources", "limits");
    const requests = under(container, "resources", "requests");
    const wanted = { ...(isTable(requests) ? requests : {}) };
    for (const [name, limit] of Object.entries(isTable(limits) ? limits : {}))
      wanted[name] ??= limit;
    for (const [name, quantity] of Object.entries(wanted)) {
      const into = name.startsWith(DEVICE_CLASS) ? devices : sums;
      into.set(name, (into.get(name) ?? 0) + plainOf(name, String(quantity)));
    }
  }
  for (const [name, quantity] of sums) maker.add(own, name, quantity);
  if (own.amounts.length > 0) request.groups.push(own);
  [...devices].forEach(([name, units], index) => {
    const amounts = [{ class: "CUSTOM_DEVICE", amount: units }];
    request.groups.push({
      ...emptyGroup(`_D${index + 1}`),
      amounts,
      deviceClass: name.slice(DEVICE_CLASS.length),
    });
  });
  return request;
}

function plainOf(name: string, quantity: string): number {
  if (name === "cpu") return cpusOf(quantity);
  return name === "memory" || name === "ephemeral-storage" ? bytesOf(quantity) : wholeOf(quantity);
}

// -- Machines --------------------------------------------------------------------------------------

function machineIn(documents: Table[], maker: Maker): Pasted | undefined {
  const machine = documents.find((each) => each.kind === "Machine");
  const types = listIn(machine, "spec", "machineTypes");
  const first = types[0];
  if (!first) return undefined;
  const group = emptyGroup("");
  const spec = under(first, "spec");
  for (const name of ["cpu", "memory"]) {
    const quantity = under(spec, name);
    if (quantity !== undefined) maker.add(group, name, quantity);
  }
  const gpu = under(spec, "gpu");
  if (isTable(gpu)) maker.add(group, String(gpu.type ?? "nvidia.com/gpu"), gpu.num ?? 1);
  const others = types
    .slice(1)
    .map((each) => String(each.name))
    .join(", ");
  const note = others && ` Its other types: ${others}.`;
  return {
    query: queryOf({ ...emptyRequest(), groups: [group] }),
    words: `One unit of ${String(first.name)}.${note}`,
  };
}

// -- hardware intents ------------------------------------------------------------------------------

/** What EMCO's requirements ask for, a group for each consumer of a hardware intent. */
function intentsIn(documents: Table[], maker: Maker): Pasted | undefined {
  const groups = new Map<string, RequestGroup>();
  let optional = 0;
  for (const document of documents) {
    const resource = under(document, "spec", "resource");
    if (!isTable(resource)) continue;
    if (under(document, "spec", "mandatory") === false) {
      optional++;
      continue;
    }
    const consumer = consumerOf(document);
    let group = groups.get(consumer);
    if (!group)
      groups.set(consumer, (group = emptyGroup(`_${consumer.replace(/[^a-zA-Z0-9_-]/g, "-")}`)));
    const amount = resource.requests ?? resource.limits ?? 1;
    maker.add(
      group,
      String(resource.name ?? resource.key ?? ""),
      amount,
      String(resource.units ?? ""),
    );
  }
  const wanted = [...groups.values()].filter((each) => each.amounts.length > 0);
  if (wanted.length === 0) return undefined;
  const note = optional > 0 ? ` ${optional} that would only be liked left out.` : "";
  const consumers = [...groups.keys()].join(", ");
  return {
    query: queryOf({
      ...emptyRequest(),
      groups: wanted,
      groupPolicy: wanted.length > 1 ? "none" : "",
    }),
    words: `Hardware intents of ${consumers}, on one host.${note}`,
  };
}

function consumerOf(document: Table): string {
  const anchor = String(under(document, "resourceContext", "anchor") ?? "");
  return /hpa-resource-consumers\/([^/]+)/.exec(anchor)?.[1] ?? "HW";
}

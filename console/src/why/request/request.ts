// A request as the form has it, and the query that means the same (Placement's candidates query with
// Dovetail's extensions). What the form has no field for is kept as it is.

export interface Amount {
  class: string;
  amount: number;
}

export interface RequestGroup {
  /** What stands behind the keys: "", "1" or "_VM". */
  suffix: string;
  amounts: Amount[];
  /** Repeated keys: each is one condition. */
  required: string[];
  memberOf: string[];
  inTree: string;
  attributes: string;
  deviceClass: string;
}

export interface FormRequest {
  groups: RequestGroup[];
  groupPolicy: string;
  /** Sets of suffixes, each in one subtree. */
  sameSubtree: string[][];
  rootRequired: string;
  others: [key: string, value: string][];
}

const GROUP_KEY =
  /^(resources|required|member_of|in_tree|attributes|class)([1-9][0-9]*|_[a-zA-Z0-9_-]{1,63}|)$/;

export function emptyGroup(suffix: string): RequestGroup {
  return {
    suffix,
    amounts: [],
    required: [],
    memberOf: [],
    inTree: "",
    attributes: "",
    deviceClass: "",
  };
}

export function emptyRequest(): FormRequest {
  return { groups: [], groupPolicy: "", sameSubtree: [], rootRequired: "", others: [] };
}

export function requestOf(query: string): FormRequest {
  const request = emptyRequest();
  const groups = new Map<string, RequestGroup>();
  for (const [key, value] of new URLSearchParams(query.trim().replace(/^\?/, ""))) {
    const [, name, suffix] = GROUP_KEY.exec(key) ?? [];
    if (name !== undefined && suffix !== undefined) {
      let group = groups.get(suffix);
      if (!group) groups.set(suffix, (group = emptyGroup(suffix)));
      readInto(group, name, value);
    } else if (key === "group_policy") request.groupPolicy = value;
    else if (key === "same_subtree") request.sameSubtree.push(value.split(","));
    else if (key === "root_required") request.rootRequired = value;
    else request.others.push([key, value]);
  }
  request.groups = [...groups.values()];
  return request;
}

function readInto(group: RequestGroup, name: string, value: string): void {
  if (name === "resources") group.amounts.push(...amountsOf(value));
  else if (name === "required") group.required.push(value);
  else if (name === "member_of") group.memberOf.push(value);
  else if (name === "in_tree") group.inTree = value;
  else if (name === "attributes") group.attributes = value;
  else group.deviceClass = value;
}

function amountsOf(value: string): Amount[] {
  return value
    .split(",")
    .filter(Boolean)
    .map((each) => {
      const [name = "", amount = ""] = each.split(":");
      return { class: name, amount: Number(amount) || 0 };
    });
}

export function queryOf(request: FormRequest): string {
  const parts: [string, string][] = [];
  for (const group of request.groups) {
    const amounts = group.amounts.filter((each) => each.class && each.amount > 0);
    if (amounts.length > 0) {
      parts.push([
        `resources${group.suffix}`,
        amounts.map((each) => `${each.class}:${each.amount}`).join(),
      ]);
    }
    for (const each of group.required) parts.push([`required${group.suffix}`, each]);
    for (const each of group.memberOf) parts.push([`member_of${group.suffix}`, each]);
    parts.push([`in_tree${group.suffix}`, group.inTree]);
    parts.push([`attributes${group.suffix}`, group.attributes]);
    parts.push([`class${group.suffix}`, group.deviceClass]);
  }
  parts.push(["group_policy", request.groupPolicy]);
  for (const set of request.sameSubtree)
    if (set.length > 1) parts.push(["same_subtree", set.join()]);
  parts.push(["root_required", request.rootRequired], ...request.others);
  return parts
    .filter(([, value]) => value !== "")
    .map(([key, value]) => `${key}=${encoded(value)}`)
    .join("&");
}

/** What queries are full of stays readable. */
function encoded(value: string): string {
  return encodeURIComponent(value).replace(/%3A|%2C|%21/g, decodeURIComponent);
}

/** What people call a group: VM of _VM; numbers are what they are. */
export function groupName(suffix: string): string {
  return suffix.replace(/^_/, "");
}

export function suffixOf(name: string): string {
  const plain = name.replace(/[^a-zA-Z0-9_-]/g, "");
  return plain === "" || /^[1-9][0-9]*$/.test(plain) ? plain : `_${plain}`;
}

/** A name for one more group. */
export function freeSuffix(request: FormRequest): string {
  const taken = new Set(request.groups.map((each) => each.suffix));
  if (request.groups.length === 0) return "";
  for (let code = 65; code < 91; code++) {
    const suffix = `_${String.fromCharCode(code)}`;
    if (!taken.has(suffix)) return suffix;
  }
  return `_G${request.groups.length}`;
}

import { describe, expect, it } from "vitest";
import hardware from "../../docs/examples/intents/hardware.yaml?raw";
import { NotUnderstood, pasted } from "../src/why/request/paste";
import { yamlDocuments } from "../src/why/request/yaml";

const PLACEMENT = ["VCPU", "MEMORY_MB", "PGPU"];
const KUBERNETES = ["CUSTOM_MILLICPU", "CUSTOM_MEMORY_BYTES", "CUSTOM_NVIDIA_COM_GPU"];

const POD = `
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  schedulerName: dovetail   # not the default
  containers:
    - name: main
      image: "trainer:1"
      resources:
        requests: {cpu: 500m, memory: 2Gi}
        limits:
          nvidia.com/gpu: 2
    - name: side
      resources: {limits: {cpu: 1}}
`;

describe("pasted text", () => {
  it("may be a query, an address or a command", () => {
    const query = "resources_VM=VCPU:50&resources_ACC=FPGA:2&same_subtree=_VM,_ACC";
    for (const text of [
      query,
      `http://h/allocation_candidates?${query}`,
      `dovetail explain '${query}' --moves`,
    ]) {
      expect(pasted(text, PLACEMENT).query).toBe(query);
    }
  });

  it("may be a pod: what its containers request adds up", () => {
    expect(pasted(POD, PLACEMENT).query).toBe("resources=VCPU:2,MEMORY_MB:2048,PGPU:2");
    expect(pasted(POD, KUBERNETES).query).toBe(
      "resources=CUSTOM_MILLICPU:1500,CUSTOM_MEMORY_BYTES:2147483648,CUSTOM_NVIDIA_COM_GPU:2",
    );
  });

  it("may be a pod that asks for device classes", () => {
    const pod = `{"kind": "Pod", "spec": {"containers": [{"resources": {"limits":
      {"resourceclass.dovetail.dev/nvidia.high.mem": 2}}}]}}`;
    expect(pasted(pod, PLACEMENT).query).toBe(
      "resources_D1=CUSTOM_DEVICE:2&class_D1=nvidia.high.mem",
    );
  });

  it("may be a Machine: one unit of its first type", () => {
    const machine = `
kind: Machine
spec:
  machineTypes:
  - name: compute-medium
    spec:
      cpu: 6000m
      memory: 48Gi
      gpu: {type: nvidia.com/gpu, num: 1, machine: DGX-1}
    available: 4
  - name: compute-large`;
    const found = pasted(machine, PLACEMENT);
    expect(found.query).toBe("resources=VCPU:6,MEMORY_MB:49152,PGPU:1");
    expect(found.words).toContain("compute-large");
  });

  it("may be hardware intents: a group for each consumer, without what would only be liked", () => {
    const { query } = pasted(hardware, PLACEMENT);
    expect(query).toContain("resources_core-fwall=VCPU:4,MEMORY_MB:954");
    expect(query).toContain("resources_logger=CUSTOM_INTEL_COM_QAT:1");
    expect(query).not.toContain("GPU");
  });

  it("is refused in words where it is none of these", () => {
    for (const [text, said] of [
      ["hello", "nothing that asks for hardware. Right would be a query"],
      ["{", "cannot be read as JSON"],
      ["a: [1", "cannot be read as YAML"],
      ["kind: Service\nmetadata: {name: web}", "Service web does not ask for hardware."],
      ["kind: Machine\nmetadata: {name: lab}", "Machine lab has no type of machines."],
      ["kind: Pod\nspec: {containers: [{name: main}]}", "Pod has no container that asks"],
    ] as const) {
      expect(() => pasted(text, PLACEMENT)).toThrow(NotUnderstood);
      expect(() => pasted(text, PLACEMENT)).toThrow(said);
    }
  });
});

describe("YAML", () => {
  it("has flow collections over lines, quotes, literals and names of all kinds", () => {
    const [found] = yamlDocuments(`
a: {b: [1, "x, y", 'it''s'], c: true}
"d e": |
  one
   two
__proto__: own
list:
- - 1
  - 2
- k: v # said
  url: http://h/p#q
long: [1,
  2]
`);
    expect(found).toMatchObject({
      a: { b: [1, "x, y", "it's"], c: true },
      "d e": "one\ntwo",
      long: [1, 2],
    });
    expect((found as { list: unknown }).list).toEqual([[1, 2], { k: "v", url: "http://h/p#q" }]);
    expect(Object.hasOwn(found as object, "__proto__")).toBe(true);
  });
});

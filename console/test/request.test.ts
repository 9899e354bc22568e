import { describe, expect, it } from "vitest";
import { freeSuffix, queryOf, requestOf } from "../src/why/request/request";

describe("a query and the form", () => {
  it.each([
    "resources=VCPU:8",
    "resources_VM=VCPU:50,MEMORY_MB:1024&required_VM=HW_A,!HW_B&resources_ACC=FPGA:2&same_subtree=_VM,_ACC",
    "resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate&root_required=HW_X&limit=10",
    "resources_G=CUSTOM_DEVICE:2&class_G=nvidia.high.mem",
    "resources=VCPU:1&required=HW_A&required=in:HW_B,HW_C&member_of=in:a,b",
  ])("%s means the same after a round trip", (query) => {
    expect(queryOf(requestOf(query))).toBe(query);
  });

  it("leaves out what is empty", () => {
    expect(queryOf(requestOf("resources=VCPU:0&required="))).toBe("");
  });

  it("names one more group", () => {
    expect(freeSuffix(requestOf("resources=VCPU:1"))).toBe("_A");
    expect(freeSuffix(requestOf("resources_A=VCPU:1"))).toBe("_B");
  });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { limitProperties, newSliceProperties } from "./slice-properties.ts";

const v1 = { unified: false, cfsPeriodUs: 100_000 };
const v2 = { unified: true, cfsPeriodUs: 100_000 };
const plain = (properties: ReturnType<typeof limitProperties>) =>
  properties.map(([name, { type, value }]) => `${name} ${type} ${value}`);

test("a new slice is counted in every controller and stays without anything in it", () => {
  const path = "/kubepods.slice/kubepods-burstable.slice";
  const both = (io: string): string[] => [
    "Description s libcontainer container kubepods-burstable.slice",
    "Wants as kubepods.slice",
    "MemoryAccounting b true",
    "CPUAccounting b true",
    `${io} b true`,
    "TasksAccounting b true",
    "DefaultDependencies b false",
  ];
  assert.deepEqual(plain(newSliceProperties(path, v1)), both("BlockIOAccounting"));
  assert.deepEqual(plain(newSliceProperties(path, v2)), both("IOAccounting"));
});

for (const { name, limits, slice, want } of [
  { name: "nothing", limits: {}, slice: v1, want: [] },
  {
    name: "everything, version 1",
    limits: { shares: 512, quotaUs: 50_000, memoryBytes: 1024, pids: 7 },
    slice: v1,
    want: ["MemoryLimit t 1024", "CPUShares t 512", "CPUQuotaPeriodUSec t 100000", "CPUQuotaPerSecUSec t 500000", "TasksMax t 7"],
  },
  {
    name: "everything, version 2",
    limits: { shares: 512, quotaUs: 50_000, memoryBytes: 1024, pids: 7 },
    slice: v2,
    want: ["MemoryMax t 1024", "CPUWeight t 20", "CPUQuotaPeriodUSec t 100000", "CPUQuotaPerSecUSec t 500000", "TasksMax t 7"],
  },
  { name: "memory that is kept", limits: { memoryMinBytes: 1024 }, slice: v2, want: ["MemoryMin t 1024"] },
  { name: "memory that is kept no longer", limits: { memoryMinBytes: 0 }, slice: v2, want: ["MemoryMin t 0"] },
  { name: "memory that version 1 cannot keep", limits: { memoryMinBytes: 1024 }, slice: v1, want: [] },
  { name: "the least CPU", limits: { shares: 2 }, slice: v2, want: ["CPUWeight t 1"] },
  {
    name: "parts of a hundredth of a CPU, rounded up",
    limits: { quotaUs: 1500 },
    slice: v1,
    want: ["CPUQuotaPeriodUSec t 100000", "CPUQuotaPerSecUSec t 20000"],
  },
]) {
  test(`unit properties of systemd for ${name}`, () => assert.deepEqual(plain(limitProperties(limits, slice)), want));
}

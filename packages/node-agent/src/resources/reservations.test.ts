import assert from "node:assert/strict";
import { test } from "node:test";
import { reservationsOf, reservedInAll } from "./reservations.ts";

const config = {
  kubeReserved: { cpu: "200m", memory: "1Gi" },
  systemReserved: { cpu: "1" },
  reservedCpus: "",
  evictionHard: { "memory.available": "100Mi" },
  allocatableIgnoresEviction: false,
};
const machine = { cpuCount: 4 };

test("--reserved-cpus replaces the reserved CPU amounts", () => {
  assert.deepEqual(reservationsOf({ ...config, reservedCpus: "0,2-3" }, machine), {
    kube: { memory: "1Gi" },
    system: { cpu: "3" },
    evictionHard: { "memory.available": "100Mi" },
  });
  assert.throws(() => reservationsOf({ ...config, reservedCpus: "0,4" }, machine), { message: 'invalid cpuset: "0,4"' });
});

test("with --experimental-allocatable-ignore-eviction hard eviction thresholds reserve nothing", () => {
  assert.deepEqual(reservationsOf({ ...config, allocatableIgnoresEviction: true }, machine).evictionHard, {});
});

test("a reservation of nothing is allowed, and the sum with the memory threshold is what is reserved in all", () => {
  const made = reservationsOf({ ...config, systemReserved: { cpu: "0", pid: "0", "ephemeral-storage": "1Gi" } }, machine);
  assert.deepEqual(made.system, { cpu: "0", pid: "0", "ephemeral-storage": "1Gi" });
  assert.deepEqual(reservedInAll({ memory: "8Gi" }, made), { cpu: "200m", memory: "1124Mi" });
  const share = { ...made, evictionHard: { "memory.available": "50%" } };
  assert.equal(reservedInAll({ memory: "8Gi" }, share)["memory"], "5Gi");
  assert.equal(reservedInAll({ memory: "8Gi" }, { ...made, evictionHard: {} })["memory"], "1Gi");
});

for (const { reserved, want } of [
  { reserved: { pods: "1" }, want: 'cannot reserve "pods" resource' },
  { reserved: { memory: "-1Gi" }, want: 'resource quantity for "memory" cannot be negative: -1Gi' },
]) {
  test(`refuses to reserve ${JSON.stringify(reserved)}`, () => {
    assert.throws(() => reservationsOf({ ...config, systemReserved: reserved }, machine), { message: want });
  });
}

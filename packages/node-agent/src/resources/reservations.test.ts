import assert from "node:assert/strict";
import { test } from "node:test";
import { reservationsOf } from "./reservations.ts";

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

for (const { reserved, want } of [
  { reserved: { pods: "1" }, want: 'cannot reserve "pods" resource' },
  { reserved: { memory: "-1Gi" }, want: 'resource quantity for "memory" cannot be negative: -1Gi' },
]) {
  test(`refuses to reserve ${JSON.stringify(reserved)}`, () => {
    assert.throws(() => reservationsOf({ ...config, systemReserved: reserved }, machine), { message: want });
  });
}

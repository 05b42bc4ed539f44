import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { RegistryServices } from "../../generic/resource.ts";
import { decodeBitmap } from "./bitmap.ts";
import { newServiceRepair } from "./repair.ts";

/** Minimal stores of services and ranges. */
function fakeServices(services: object[], ranges: Map<string, KubeObject>): RegistryServices {
  const stores: Record<string, unknown> = {
    services: { list: async () => ({ entries: services.map((object) => ({ object: () => object })) }) },
    rangeallocations: {
      storage: {
        async guaranteedUpdate(key: string, change: (entry: unknown) => KubeObject) {
          const current = ranges.get(key);
          ranges.set(key, await change(current && { object: () => current }));
        },
      },
    },
  };
  return { store: (_group: string, resource: string) => stores[resource] } as unknown as RegistryServices;
}

const offsetsIn = (object: KubeObject | undefined): number[] => [
  ...decodeBitmap(String((object as { data?: string } | undefined)?.data ?? ""), 254).offsets(),
];

test("allocates what services hold at once, and releases what no service holds after three passes", async () => {
  const ranges = new Map<string, KubeObject>();
  const leaked = decodeBitmap("", 254);
  leaked.set(41); // 10.0.0.42
  ranges.set("serviceips", { metadata: {}, range: "10.0.0.0/24", data: leaked.encode() } as KubeObject);
  const service = { metadata: { name: "s" }, spec: { clusterIPs: ["10.0.0.9"], ports: [{ port: 80, nodePort: 30003 }] } };
  const services = fakeServices([service, { metadata: {}, spec: { clusterIPs: ["None"] } }], ranges);
  const faults: string[][] = [];
  const repair = newServiceRepair({
    config: { services: () => services, serviceClusterIpRange: ["10.0.0.0/24"], nodePortRange: { from: 30000, to: 30100 } },
    clock: realClock,
    log: discardLogger,
    onFault: (fault) => faults.push([fault.reason, fault.message]),
  });
  await repair.runOnce();
  assert.deepEqual(offsetsIn(ranges.get("serviceips")), [8, 41]);
  assert.deepEqual(offsetsIn(ranges.get("servicenodeports")), [3]);
  const repaired = [
    ["ClusterIPNotAllocated", "Cluster IP [IPv4]:10.0.0.9 is not allocated; repairing"],
    ["PortNotAllocated", "Port 30003 is not allocated; repairing"],
  ];
  assert.deepEqual(faults, repaired);
  await repair.runOnce();
  assert.deepEqual(offsetsIn(ranges.get("serviceips")), [8, 41]);
  await repair.runOnce();
  assert.deepEqual(offsetsIn(ranges.get("serviceips")), [8]);
  assert.deepEqual(faults, repaired, "each is reported in the run that repairs it");
});

test("a repair whose write lost a race does not count towards the release of a number", async () => {
  const ranges = new Map<string, KubeObject>();
  const rangeWith = (...offsets: number[]) => {
    const bitmap = decodeBitmap("", 254);
    for (const offset of offsets) bitmap.set(offset);
    ranges.set("serviceips", { metadata: {}, range: "10.0.0.0/24", data: bitmap.encode() } as KubeObject);
  };
  const services = fakeServices([{ metadata: { name: "s" }, spec: { clusterIPs: ["10.0.0.9"] } }], ranges);
  const faults: string[] = [];
  const { storage } = services.store("", "rangeallocations");
  const update = storage.guaranteedUpdate as unknown as (...args: unknown[]) => Promise<unknown>;
  let lostRaces = 1;
  const racing = async (key: string, change: unknown) => {
    if (key === "serviceips" && lostRaces-- > 0) {
      rangeWith(41);
      await update(key, change);
      rangeWith(); // another server has released the number meanwhile
    }
    return update(key, change);
  };
  const raced = {
    store: (_group: string, resource: string) =>
      resource === "services" ? services.store("", resource) : { storage: { guaranteedUpdate: racing } },
  };
  const repair = newServiceRepair({
    config: {
      services: () => raced as unknown as RegistryServices,
      serviceClusterIpRange: ["10.0.0.0/24"],
      nodePortRange: { from: 30000, to: 30100 },
    },
    clock: realClock,
    log: discardLogger,
    onFault: ({ reason }) => faults.push(reason),
  });
  await repair.runOnce();
  assert.deepEqual(faults, ["ClusterIPNotAllocated"], "reported once, though it was missing in both attempts");
  rangeWith(8, 41); // the second one is taken by a service that is being created
  for (const want of [[8, 41], [8, 41], [8]]) {
    await repair.runOnce();
    assert.deepEqual(offsetsIn(ranges.get("serviceips")), want);
  }
});

test("a number that is held in between counts as unused anew, and each range counts for itself", async () => {
  const ranges = new Map<string, KubeObject>();
  const rangeOf = (key: string, range: string): void => {
    const bitmap = decodeBitmap("", 254);
    bitmap.set(3); // 10.0.0.4, and port 30003
    ranges.set(key, { metadata: {}, range, data: bitmap.encode() } as KubeObject);
  };
  rangeOf("serviceips", "10.0.0.0/24");
  const services: object[] = [];
  const repair = newServiceRepair({
    config: {
      services: () => fakeServices(services, ranges),
      serviceClusterIpRange: ["10.0.0.0/24"],
      nodePortRange: { from: 30000, to: 30100 },
    },
    clock: realClock,
    log: discardLogger,
    onFault() {},
  });
  const held = (): number[][] => [offsetsIn(ranges.get("serviceips")), offsetsIn(ranges.get("servicenodeports"))];
  for (let run = 0; run < 2; run++) await repair.runOnce();
  rangeOf("servicenodeports", "30000-30100");
  services.push({ metadata: { name: "s" }, spec: { clusterIPs: ["10.0.0.4"] } });
  await repair.runOnce(); // the address is in use, the port is unused for the first time
  services.length = 0;
  for (const want of [
    [[3], [3]],
    [[3], []],
    [[], []],
  ]) {
    await repair.runOnce();
    assert.deepEqual(held(), want);
  }
});

test("the ranges of both families are repaired, every three minutes, also after a failure", async (t) => {
  const ranges = new Map<string, KubeObject>();
  const services: object[] = [];
  const clock = newFakeClock();
  let isAway = true;
  const errors: string[] = [];
  const repair = newServiceRepair({
    config: {
      services: () => {
        if (isAway) throw new Error("etcd is away");
        return fakeServices(services, ranges);
      },
      serviceClusterIpRange: ["10.0.0.0/24", "fd00::/120"],
      nodePortRange: { from: 30000, to: 30100 },
    },
    clock,
    log: { ...discardLogger, error: (message) => void errors.push(message) },
    onFault() {},
  });
  const stopped = new AbortController();
  t.after(() => stopped.abort());
  repair.run(stopped.signal).catch(() => {});
  services.push({ metadata: { name: "s" }, spec: { clusterIPs: ["10.0.0.9", "fd00::9"] } });
  await clock.advance(180_000);
  assert.deepEqual([errors, ranges.size], [["cannot repair service addresses and ports"], 0]);
  isAway = false;
  await clock.advance(180_000);
  await settle();
  assert.deepEqual([offsetsIn(ranges.get("serviceips")), offsetsIn(ranges.get("secondaryserviceips"))], [[8], [8]]);
});

test("reports what services hold twice, out of range, of another family, or in no form of an address", async () => {
  const service = (name: string, clusterIPs: string[], ...nodePorts: number[]): Service => ({
    metadata: { name, namespace: "default" },
    spec: { clusterIPs, ports: nodePorts.map((nodePort) => ({ port: 80, nodePort })) },
  });
  const services = [
    service("first", ["10.0.0.9"], 30001, 30001),
    service("second", ["10.0.0.9", "fd00::9"], 30001, 29999),
    service("third", ["10.0.1.9"], 30101),
    service("fourth", ["10.0.0.256"]),
    service("fifth", ["None"], 30000, 30100),
  ];
  const faults: string[][] = [];
  const repair = newServiceRepair({
    config: {
      services: () => fakeServices(services, new Map()),
      serviceClusterIpRange: ["10.0.0.0/24"],
      nodePortRange: { from: 30000, to: 30100 },
    },
    clock: realClock,
    log: discardLogger,
    onFault: ({ service, source, reason, message }) =>
      faults.push([service.metadata.name ?? "", source.slice(0, 2), reason, message]),
  });
  await repair.runOnce();
  assert.deepEqual(faults, [
    [
      "second",
      "ip",
      "ClusterIPAlreadyAllocated",
      "Cluster IP [IPv4]:10.0.0.9 was assigned to multiple services; please recreate service",
    ],
    [
      "second",
      "ip",
      "ClusterIPNotValid",
      "Cluster IP fd00::9(IPv6) is of ip family that is no longer configured on cluster; please recreate service",
    ],
    [
      "third",
      "ip",
      "ClusterIPOutOfRange",
      "Cluster IP [IPv4]:10.0.1.9 is not within the service CIDR 10.0.0.0/24; please recreate service",
    ],
    ["fourth", "ip", "ClusterIPNotValid", "Cluster IP 10.0.0.256 is not a valid IP; please recreate service"],
    ["first", "ip", "ClusterIPNotAllocated", "Cluster IP [IPv4]:10.0.0.9 is not allocated; repairing"],
    ["second", "po", "PortAlreadyAllocated", "Port 30001 was assigned to multiple services; please recreate service"],
    ["second", "po", "PortOutOfRange", "Port 29999 is not within the port range 30000-30100; please recreate service"],
    ["third", "po", "PortOutOfRange", "Port 30101 is not within the port range 30000-30100; please recreate service"],
    ["first", "po", "PortNotAllocated", "Port 30001 is not allocated; repairing"],
    ["fifth", "po", "PortNotAllocated", "Port 30000 is not allocated; repairing"],
    ["fifth", "po", "PortNotAllocated", "Port 30100 is not allocated; repairing"],
  ]);
});

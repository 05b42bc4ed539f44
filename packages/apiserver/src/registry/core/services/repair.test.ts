import assert from "node:assert/strict";
import { test } from "node:test";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
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

test("takes what services hold at once, and gives back what nobody holds after three looks", async () => {
  const ranges = new Map<string, KubeObject>();
  const leaked = decodeBitmap("", 254);
  leaked.set(41); // 10.0.0.42
  ranges.set("serviceips", { metadata: {}, range: "10.0.0.0/24", data: leaked.encode() } as KubeObject);
  const service = { metadata: { name: "s" }, spec: { clusterIPs: ["10.0.0.9"], ports: [{ port: 80, nodePort: 30003 }] } };
  const services = fakeServices([service, { metadata: {}, spec: { clusterIPs: ["None"] } }], ranges);
  const repair = newServiceRepair({
    config: { services: () => services, serviceClusterIpRange: ["10.0.0.0/24"], nodePortRange: { from: 30000, to: 30100 } },
    clock: realClock,
    log: discardLogger,
  });
  await repair.runOnce();
  assert.deepEqual(offsetsIn(ranges.get("serviceips")), [8, 41]);
  assert.deepEqual(offsetsIn(ranges.get("servicenodeports")), [3]);
  await repair.runOnce();
  assert.deepEqual(offsetsIn(ranges.get("serviceips")), [8, 41]);
  await repair.runOnce();
  assert.deepEqual(offsetsIn(ranges.get("serviceips")), [8]);
});

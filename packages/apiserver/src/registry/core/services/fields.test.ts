import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service, ServicePort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { keepAllocated } from "./fields.ts";

const aService = (ports: Partial<ServicePort>[], spec: object = {}): Service =>
  ({
    metadata: { name: "s" },
    spec: { type: "NodePort", ports: ports.map((port) => ({ protocol: "TCP", ...port })), ...spec },
  }) as never;

for (const { name, old, next, want } of [
  {
    name: "each port keeps its own",
    old: [
      [80, 30080],
      [443, 30443],
    ],
    next: [[443], [80]],
    want: [30443, 30080],
  },
  { name: "a new port gets none", old: [[80, 30080]], next: [[80], [81]], want: [30080, undefined] },
  { name: "a requested one stays", old: [[80, 30080]], next: [[80, 30001]], want: [30001] },
  {
    name: "one that another port has taken over is not given twice",
    old: [[80, 30080]],
    next: [[80], [81, 30080]],
    want: [undefined, 30080],
  },
  {
    name: "of two ports alike the first counts",
    old: [
      [80, 30080],
      [80, 30081],
    ],
    next: [[80]],
    want: [30080],
  },
]) {
  test(`an update without node ports: ${name}`, () => {
    const ports = (of: number[][]) =>
      of.map(([port, nodePort]) => ({ port, ...(nodePort !== undefined && { nodePort }) }) as ServicePort);
    const updated = aService(ports(next));
    keepAllocated(updated, aService(ports(old)));
    assert.deepEqual(
      updated.spec.ports?.map(({ nodePort }) => nodePort),
      want,
    );
  });
}

test("a port of another protocol does not keep the node port, nor one of a type without node ports", () => {
  const old = aService([{ port: 53, nodePort: 30053 }]);
  const udp = aService([{ port: 53, protocol: "UDP" }]);
  keepAllocated(udp, old);
  assert.equal(udp.spec.ports?.[0]?.nodePort, undefined);
  const internal = aService([{ port: 53 }], { type: "ClusterIP" });
  keepAllocated(internal, old);
  assert.equal(internal.spec.ports?.[0]?.nodePort, undefined);
});

test("addresses and the health check port are kept where they are left out, and only where the type has them", () => {
  const balanced = { type: "LoadBalancer", externalTrafficPolicy: "Local" };
  const addresses = { clusterIP: "10.0.0.7", clusterIPs: ["10.0.0.7", "fd00::7"] };
  const old = aService([], { ...balanced, ...addresses, healthCheckNodePort: 31000 });
  const kept = aService([], balanced);
  keepAllocated(kept, old);
  assert.deepEqual(kept.spec, { ports: [], ...balanced, ...addresses, healthCheckNodePort: 31000 });
  assert.notEqual(kept.spec.clusterIPs, old.spec.clusterIPs, "a copy");
  const other = aService([], { clusterIP: "10.0.0.8" });
  keepAllocated(other, old);
  assert.deepEqual(other.spec, { type: "NodePort", ports: [], clusterIP: "10.0.0.8" });
  const external = aService([], { type: "ExternalName" });
  keepAllocated(external, old);
  assert.deepEqual(external.spec, { type: "ExternalName", ports: [] });
});

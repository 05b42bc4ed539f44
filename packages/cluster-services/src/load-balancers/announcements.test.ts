import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aService } from "../testing/objects.ts";
import { candidatesFor, hostPortConflicts } from "./announcements.ts";
import { excludedLabel } from "./names.ts";
import { Pool } from "./pool.ts";

const node: Node = { metadata: { name: "n1" }, spec: {}, status: { addresses: [{ type: "InternalIP", address: "10.0.0.1" }] } };
const balanced = (name: string, spec: Partial<Service["spec"]> = {}, address = "192.0.2.1"): Service =>
  aService(name, { type: "LoadBalancer", ...spec }, [address]);

const candidates = (services: Service[], of: Node | undefined = node): string[] => [
  ...candidatesFor({
    ...{ node: of, nodeName: "n1", services, pool: new Pool(["192.0.2.0/24"]) },
    nodesWithEndpoints: (key) => new Set([key === "default/here" ? "n1" : "n2"]),
  }),
];

test("a node is a candidate for addresses of the pool, with policy Local where it has endpoints", () => {
  const local = { externalTrafficPolicy: "Local" as const };
  const services = [
    balanced("any"),
    balanced("here", local, "192.0.2.2"),
    balanced("there", local, "192.0.2.3"),
    balanced("nodes", {}, "10.0.0.1"),
    balanced("theirs", { loadBalancerClass: "metallb" }, "192.0.2.4"),
    balanced("was", { type: "ClusterIP" }, "192.0.2.5"),
    {
      ...balanced("going", {}, "192.0.2.6"),
      metadata: { namespace: "default", name: "going", deletionTimestamp: "2024-01-01T00:00:00Z" },
    },
  ];
  assert.deepEqual(candidates(services), ["192.0.2.1", "192.0.2.2"]);
});

test("a node that is excluded or gone is no candidate", () => {
  assert.deepEqual(candidates([balanced("any")], { ...node, metadata: { name: "n1", labels: { [excludedLabel]: "true" } } }), []);
  const gone = {
    nodeName: "n1",
    services: [balanced("any")],
    pool: new Pool(["192.0.2.1"]),
    nodesWithEndpoints: () => new Set<string>(),
  };
  assert.equal(candidatesFor({ ...gone, node: undefined }).size, 0);
});

const aPod = (hostPort: number, hostIP?: string, phase = "Running"): Pod => ({
  metadata: { namespace: "default", name: "web-0" },
  spec: {
    containers: [
      { name: "c", ports: [{ containerPort: 80, hostPort, protocol: "TCP", ...(hostIP !== undefined && { hostIP }) }] },
    ],
  },
  status: { phase },
});

const withPorts = (...ports: NonNullable<NonNullable<Pod["spec"]>["containers"][0]["ports"]>[]): Pod => ({
  ...aPod(0),
  spec: { containers: ports.map((own, i) => ({ name: `c${i}`, ports: own })) },
});

for (const { name, pod, service = balanced("a", {}, "10.0.0.1"), want } of [
  { name: "the same port", pod: aPod(80), want: 1 },
  { name: "the same port on this node's address", pod: aPod(80, "10.0.0.1"), want: 1 },
  { name: "the same port on another address", pod: aPod(80, "127.0.0.1"), want: 0 },
  { name: "another port", pod: aPod(81), want: 0 },
  { name: "a pod that has ended", pod: aPod(80, undefined, "Succeeded"), want: 0 },
  { name: "a pod that has failed", pod: aPod(80, undefined, "Failed"), want: 0 },
  { name: "the same port on all addresses of IPv6", pod: aPod(80, "::"), want: 1 },
  { name: "the same port on all addresses", pod: aPod(80, "0.0.0.0"), want: 1 },
  { name: "the same port of another protocol", pod: withPorts([{ containerPort: 80, hostPort: 80, protocol: "UDP" }]), want: 0 },
  {
    name: "the same port of a second container",
    pod: withPorts([{ containerPort: 1, hostPort: 1 }], [{ containerPort: 2 }, { containerPort: 80, hostPort: 80 }]),
    want: 1,
  },
  {
    name: "the same port as the Service's second",
    pod: aPod(80),
    service: balanced("a", { ports: [{ port: 81 }, { port: 80 }] as Service["spec"]["ports"] & object }, "10.0.0.1"),
    want: 1,
  },
  { name: "a Service with another node's address", pod: aPod(80), service: balanced("a", {}, "10.0.0.2"), want: 0 },
  { name: "a Service of another type", pod: aPod(80), service: aService("a", {}, ["10.0.0.1"]), want: 0 },
]) {
  test(`host port and Service: ${name}`, () => {
    const found = hostPortConflicts([service], [pod], node);
    assert.equal(found.length, want);
    for (const { message } of found)
      assert.equal(message, "port 80/TCP of node n1 is a host port of the pod default/web-0 too; connections go to the Service");
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { formatLocation, newServiceResolver } from "./service-resolver.ts";

const self = () => ({ host: "127.0.0.1", port: 6443 });

function resolverOver(spec: Service["spec"], subsets?: Endpoints["subsets"] | "none", random = 0) {
  const service = { metadata: { namespace: "default", name: "api" }, spec } as Service & KubeObject;
  const endpoints = { metadata: { namespace: "default", name: "api" }, subsets } as Endpoints & KubeObject;
  return newServiceResolver({
    services: { get: (key) => (key === "default/api" ? service : undefined) },
    endpoints:
      subsets === undefined ? undefined : { get: (key) => (key === "default/api" && subsets !== "none" ? endpoints : undefined) },
    self,
    random: () => random,
  });
}

const clusterIp = { clusterIP: "10.0.0.7", ports: [{ name: "https", port: 443, targetPort: 8443 }] };
const two = [
  { notReadyAddresses: [{ ip: "10.1.0.9" }], ports: [{ name: "https", port: 8443 }] },
  {
    addresses: [{ ip: "10.1.0.1" }, { ip: "10.1.0.2" }],
    ports: [
      { name: "metrics", port: 9 },
      { name: "https", port: 8443 },
    ],
  },
];

for (const { name, spec, subsets, random, want } of [
  { name: "a cluster IP", spec: clusterIp, want: "10.0.0.7:443" },
  { name: "a cluster IP of IPv6", spec: { ...clusterIp, clusterIP: "fd00::7" }, want: "[fd00::7]:443" },
  { name: "a node port's cluster IP", spec: { ...clusterIp, type: "NodePort" as const }, want: "10.0.0.7:443" },
  { name: "a load balancer's cluster IP", spec: { ...clusterIp, type: "LoadBalancer" as const }, want: "10.0.0.7:443" },
  {
    name: "a load balancer's endpoint",
    spec: { ...clusterIp, type: "LoadBalancer" as const },
    subsets: two,
    want: "10.1.0.1:8443",
  },
  {
    name: "a name elsewhere",
    spec: { type: "ExternalName" as const, externalName: "api.example.com" },
    want: "api.example.com:443",
  },
  { name: "no cluster IP", spec: { ...clusterIp, clusterIP: "None" }, want: 'cannot route to service with ClusterIP "None"' },
  { name: "another port", spec: { ...clusterIp, ports: [{ port: 1 }] }, want: 'no service port 443 found for service "api"' },
  { name: "an unknown type", spec: { type: "Odd" as never }, want: 'unsupported service type "Odd"' },
  { name: "an endpoint that is ready", spec: clusterIp, subsets: two, want: "10.1.0.1:8443" },
  { name: "another endpoint at another time", spec: clusterIp, subsets: two, random: 0.9, want: "10.1.0.2:8443" },
  {
    name: "the only endpoint of the port, when the choice begins behind it",
    ...{ spec: clusterIp, subsets: [...two.slice(1), ...two.slice(0, 1)], random: 0.9, want: "10.1.0.2:8443" },
  },
  { name: "endpoints of a headless service", spec: { ...clusterIp, clusterIP: "None" }, subsets: two, want: "10.1.0.1:8443" },
  { name: "no endpoints", spec: clusterIp, subsets: [], want: 'no endpoints available for service "api"' },
  {
    name: "endpoints of other ports",
    spec: { ports: [{ port: 443 }] },
    subsets: two,
    want: 'no endpoints available for service "api"',
  },
  { name: "no object of endpoints", spec: clusterIp, subsets: "none" as const, want: 'endpoints "api" not found' },
  {
    name: "endpoints of a name elsewhere",
    spec: { type: "ExternalName" as const, externalName: "a", ports: [{ port: 443 }] },
    subsets: two,
    want: 'unsupported service type "ExternalName"',
  },
]) {
  test(`${name}: ${want}`, () => {
    let got: string;
    try {
      got = formatLocation(resolverOver(spec, subsets, random)("default", "api", 443));
    } catch (err) {
      got = (err as Error).message;
    }
    assert.equal(got, want);
  });
}

test("a missing service is an error, and default/kubernetes is this server", () => {
  const resolve = resolverOver(clusterIp);
  assert.throws(() => resolve("default", "other", 443), { message: 'service "other" not found' });
  assert.deepEqual(resolve("default", "kubernetes", 443), self());
  assert.throws(() => resolve("default", "kubernetes", 444), { message: 'service "kubernetes" not found' });
});

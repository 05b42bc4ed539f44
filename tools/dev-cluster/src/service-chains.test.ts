import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/schema/kinds/discovery/v1";
import { restoreInput, routesOf } from "./service-chains.ts";

const service = (spec: object): Service => ({ metadata: { name: "web", namespace: "shop" }, spec }) as unknown as Service;
const slice = (endpoints: object[], labels = { "kubernetes.io/service-name": "web" }): EndpointSlice =>
  ({
    metadata: { name: "web-1", namespace: "shop", labels },
    addressType: "IPv4",
    ports: [{ name: "", port: 8080 }],
    endpoints,
  }) as unknown as EndpointSlice;

for (const { name, spec, slices, want } of [
  { name: "a headless service has no route", spec: { clusterIP: "None", ports: [{ port: 80 }] }, slices: [], want: [] },
  {
    name: "an address that is not ready is left out",
    spec: { clusterIP: "10.96.0.7", ports: [{ port: 80 }] },
    slices: [
      slice([
        { addresses: ["10.244.0.4"], conditions: { ready: true } },
        { addresses: ["10.244.0.5"], conditions: { ready: false } },
      ]),
    ],
    want: [["10.244.0.4:8080"]],
  },
  {
    name: "the slices of another service do not count",
    spec: { clusterIP: "10.96.0.7", ports: [{ port: 80 }] },
    slices: [slice([{ addresses: ["10.244.0.4"] }], { "kubernetes.io/service-name": "other" })],
    want: [[]],
  },
]) {
  test(name, () => {
    assert.deepEqual(
      routesOf([service(spec)], slices).map((route) => route.endpoints),
      want,
    );
  });
}

test("spreads connections evenly, rejects where nobody answers and drops chains that no route needs", () => {
  const routes = routesOf(
    [
      service({ clusterIP: "10.96.0.7", ports: [{ port: 80, nodePort: 30080 }] }),
      { ...service({ clusterIP: "10.96.0.8", ports: [{ port: 81 }] }), metadata: { name: "idle", namespace: "shop" } },
    ],
    [slice([{ addresses: ["10.244.0.4"] }, { addresses: ["10.244.0.5"] }])],
  );
  const input = restoreInput("abc123", "10.244.0.0/16", routes, new Set(["COX-abc123-old"]));
  assert.match(input, /-A COX-abc123-SERVICES -d 10\.96\.0\.7\/32 -p tcp --dport 80 -j (COX-abc123-[0-9a-f]{12})\n/);
  assert.match(input, /-m addrtype --dst-type LOCAL --dport 30080/);
  assert.match(
    input,
    /--probability 0\.5000000000 -j DNAT --to-destination 10\.244\.0\.4:8080\n.*-p tcp -j DNAT --to-destination 10\.244\.0\.5:8080\n/,
  );
  assert.match(input, /:COX-abc123-old - \[0:0\]\n[\s\S]*-X COX-abc123-old\n/);
  assert.match(input, /-A COX-abc123-REJECT -d 10\.96\.0\.8\/32 -p tcp --dport 81 -j REJECT\n/);
});

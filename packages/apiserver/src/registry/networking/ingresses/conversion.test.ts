import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { defaultIngressV1beta1, ingressFromV1beta1, ingressToV1beta1 } from "./conversion.ts";

/** Two rules of two paths each. */
const rules = (backend: object, more: object = {}) =>
  ["a.example.com", "b.example.com"].map((host) => ({
    host,
    http: { paths: ["/", "/p"].map((path) => ({ path, ...more, backend })) },
  }));
const ingress = (spec: object): KubeObject & { spec: object } => ({ metadata: { name: "i" }, spec });

for (const { name, old, now } of [
  { name: "a port's number", old: { serviceName: "s", servicePort: 80 }, now: { service: { name: "s", port: { number: 80 } } } },
  {
    name: "a port's name",
    old: { serviceName: "s", servicePort: "http" },
    now: { service: { name: "s", port: { name: "http" } } },
  },
  { name: "a port alone", old: { serviceName: "", servicePort: 80 }, now: { service: { name: "", port: { number: 80 } } } },
  {
    name: "a service without a port",
    old: { serviceName: "s", servicePort: 0 },
    now: { service: { name: "s", port: { number: 0 } } },
  },
  { name: "a resource", old: { resource: { kind: "K", name: "n" } }, now: { resource: { kind: "K", name: "n" } } },
]) {
  test(`${name} is converted both ways between v1beta1 and v1`, () => {
    const v1beta1 = ingress({ ingressClassName: "c", backend: old, rules: rules(old) });
    const v1 = ingress({ ingressClassName: "c", defaultBackend: now, rules: rules(now) });
    assert.deepEqual(ingressFromV1beta1(v1beta1), v1);
    assert.deepEqual(ingressToV1beta1(v1), v1beta1);
  });
}

test("a path of v1beta1 without a type gets the one that v1 requires", () => {
  const v1beta1 = ingress({ rules: rules({ serviceName: "s", servicePort: 80 }) });
  defaultIngressV1beta1(v1beta1);
  assert.deepEqual(
    v1beta1,
    ingress({ rules: rules({ serviceName: "s", servicePort: 80 }, { pathType: "ImplementationSpecific" }) }),
  );
});

test("a path that has a type keeps it, and rules without paths stay", () => {
  const given = ingress({
    rules: [{ host: "a" }, ...rules({ serviceName: "s", servicePort: 80 }, { pathType: "Exact" }), { http: { paths: [] } }],
    tls: [{ secretName: "t" }],
  });
  const object = structuredClone(given);
  defaultIngressV1beta1(object);
  assert.deepEqual(object, given);
  assert.deepEqual(ingressToV1beta1(ingressFromV1beta1(given)), given);
});

for (const { name, old, now } of [
  { name: "nothing", old: {}, now: {} },
  { name: "a service name alone", old: { serviceName: "s" }, now: { service: { name: "s", port: { number: 0 } } } },
  { name: "an empty name and port", old: { serviceName: "", servicePort: 0 }, now: {} },
  {
    name: "an empty text as its port alone",
    old: { servicePort: "" },
    now: { service: { name: "", port: { name: "" } } },
  },
]) {
  test(`a backend of v1beta1 with ${name}`, () => {
    assert.deepEqual(ingressFromV1beta1(ingress({ backend: old })), ingress({ defaultBackend: now }));
  });
}

for (const { name, port, servicePort } of [
  { name: "without a port is one of port 0", port: undefined, servicePort: 0 },
  { name: "with an empty port is one of port 0", port: {}, servicePort: 0 },
  { name: "with a port of a name and a number is one of the name", port: { name: "http", number: 80 }, servicePort: "http" },
  { name: "with a port of an empty name and a number is one of the number", port: { name: "", number: 80 }, servicePort: 80 },
]) {
  test(`a service ${name} in v1beta1`, () => {
    const backend = { service: { name: "s", ...(port && { port }) } };
    const old = { serviceName: "s", servicePort };
    const v1 = ingress({ defaultBackend: backend, rules: rules(backend) });
    assert.deepEqual(ingressToV1beta1(v1), ingress({ backend: old, rules: rules(old) }));
  });
}

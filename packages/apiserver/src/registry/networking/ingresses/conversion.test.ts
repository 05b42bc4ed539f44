import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { defaultIngressV1beta1, ingressFromV1beta1, ingressToV1beta1 } from "./conversion.ts";

const rules = (backend: object, more: object = {}) => [
  { host: "a.example.com", http: { paths: [{ path: "/", ...more, backend }] } },
];
const ingress = (spec: object): KubeObject & { spec: object } => ({ metadata: { name: "i" }, spec });

for (const { name, old, now } of [
  { name: "a port's number", old: { serviceName: "s", servicePort: 80 }, now: { service: { name: "s", port: { number: 80 } } } },
  {
    name: "a port's name",
    old: { serviceName: "s", servicePort: "http" },
    now: { service: { name: "s", port: { name: "http" } } },
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

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJsonPath } from "./json-path.ts";

const object = {
  metadata: { name: "a", labels: { "app.kubernetes.io/name": "web", plain: "x" } },
  spec: { ports: [{ name: "http", port: 80 }, { name: "https", port: 443 }, { port: 8080 }], flag: true },
  status: {
    conditions: [
      { type: "Ready", status: "True" },
      { type: "Old", status: "False" },
    ],
  },
};

for (const [path, want] of [
  [".metadata.name", ["a"]],
  ["metadata.name", ["a"]],
  ["$.metadata.name", ["a"]],
  [".metadata.labels.app\\.kubernetes\\.io/name", ["web"]],
  [".metadata.labels['app.kubernetes.io/name']", ["web"]],
  ['.metadata.labels["plain"]', ["x"]],
  [".spec.ports[0].port", [80]],
  [".spec.ports[-1].port", [8080]],
  [".spec.ports[0,1].port", [80, 443]],
  [".spec.ports[0:2].port", [80, 443]],
  [".spec.ports[::2].port", [80, 8080]],
  [".spec.ports[*].name", ["http", "https"]],
  [".spec.ports.*.port", [80, 443, 8080]],
  ["..port", [80, 443, 8080]],
  ['.status.conditions[?(@.type=="Ready")].status', ["True"]],
  [".status.conditions[?(@.type=='Old')].status", ["False"]],
  [".spec.ports[?(@.port>100)].port", [443, 8080]],
  [".spec.ports[?(@.name)].port", [80, 443]],
  ['.spec.ports[?(@.name!="http")].port', [443]],
  [".spec.missing.deeper", []],
  [".spec.__proto__", []],
] as const) {
  test(`${path} leads to ${JSON.stringify(want)}`, () => {
    assert.deepEqual(parseJsonPath(path)(object), want);
  });
}

for (const path of [".spec[", ".spec['a]", ".spec[?(@.a", ".spec[a]", ".a b", ".spec[?(@.a==)]"]) {
  test(`${path} is no path`, () => {
    assert.throws(() => parseJsonPath(path));
  });
}

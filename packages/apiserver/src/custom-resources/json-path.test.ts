import assert from "node:assert/strict";
import { test } from "node:test";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { agesAt } from "../registry/generic/ages.ts";
import { columnsOf } from "./columns.ts";
import { PathBudget, parseJsonPath } from "./json-path.ts";

const object = {
  metadata: { name: "a", labels: { "app.kubernetes.io/name": "web", plain: "x" } },
  spec: { ports: [{ name: "http", port: 80 }, { name: "https", port: 443 }, { port: 8080 }], flag: true },
  status: {
    conditions: [
      { type: "Ready", status: "True" },
      { type: "Old", status: "False" },
    ],
    flags: [
      { name: "a", on: true },
      { name: "b", on: false },
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
  [".spec.ports[?(@.port>=443)].port", [443, 8080]],
  [".spec.ports[?(@.port<=443)].port", [80, 443]],
  [".spec.ports[?(@.port<443)].port", [80]],
  [".spec.ports[?(@.port>443)].port", [8080]],
  ['.spec.ports[?(@.name>"http")].port', [443]],
  [".spec.ports[?(@.name>1)].port", []],
  [".spec..port", [80, 443, 8080]],
  [".spec.missing.deeper", []],
  [".spec.ports.[1].name", ["https"]],
  ["$.spec.ports[1:].[0].port", []],
  [".metadata.name.", ["a"]],
  ["..[0].port", [80]],
  [".spec.__proto__", []],
  [".status.flags[?(@.on==true)].name", ["a"]],
  [".status.flags[?(@.on==false)].name", ["b"]],
  [".status.flags[?(@.on!=true)].name", ["b"]],
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

for (const [length, isTaken] of [
  [4096, true],
  [4097, false],
] as const) {
  test(`a path of ${length} characters is ${isTaken ? "taken" : "refused"}`, () => {
    const parse = () => parseJsonPath(`.${"a".repeat(length - 1)}`);
    if (isTaken) assert.deepEqual(parse()(object), []);
    else assert.throws(parse, { message: "the path is too long" });
  });
}

const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1), b: levels });
const large = { metadata: { name: "large" }, nested: nested(60), list: Array.from({ length: 10_000 }, (_, i) => ({ a: i })) };

for (const path of [
  "..a..a..a..a..a",
  "..*..*..*..*",
  `${"..".repeat(2000)}a`,
  `.list[${"*,".repeat(2000)}*]`,
  `.list[${"0:10000,".repeat(500)}0]`,
  `.list[?(@..a..a)]${"[*]".repeat(1000)}`,
  `${".list[?(@.a>-1)]".repeat(200)}`,
  `.list${"[?(@".repeat(1000)}`,
])
  test(`a path that leads to very many values leads nowhere, soon: ${path.slice(0, 40)}`, () => {
    const tookMs = cpuMsOf(() => {
      try {
        assert.ok(parseJsonPath(path)(large).length < 20_000);
      } catch (err) {
        assert.match((err as Error).message, /^the path leads to too many values$|^un|^invalid/);
      }
    });
    assert.ok(tookMs < 100, `${tookMs} ms`);
  });

test("all columns of one object have one budget", () => {
  const columns = Array.from({ length: 500 }, (_, i) => ({ name: `c${i}`, type: "integer", jsonPath: ".list[*].a" }));
  const table = columnsOf([...columns, { name: "last", type: "string", jsonPath: ".metadata.name" }]);
  let cells: readonly unknown[] = [];
  const tookMs = cpuMsOf(() => {
    cells = table.cells(large, agesAt(0));
  });
  assert.ok(tookMs < 100, `${tookMs} ms`);
  assert.equal(cells.length, 502);
  assert.deepEqual([cells[0], cells[1], cells.at(-1)], ["large", null, null]);
  const few = columnsOf([{ name: "first", type: "integer", jsonPath: ".list[0:100].a" }]);
  assert.deepEqual(few.cells(large as unknown as Unstructured, agesAt(0)), ["large", 0]);
});

test("the values that a path visits count towards its budget", () => {
  assert.equal(parseJsonPath(".spec.ports[*].port")(object, new PathBudget(20)).length, 3);
  assert.throws(() => parseJsonPath(".spec.ports[*].port")(object, new PathBudget(3)), /too many values/);
});

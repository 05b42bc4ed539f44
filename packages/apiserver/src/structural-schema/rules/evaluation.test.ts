import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Schema } from "../schema.ts";
import { ruleCheckOf } from "./evaluation.ts";

const rulesOf = (...rules: string[]): object => ({ "x-kubernetes-validations": rules.map((rule) => ({ rule })) });

/** Errors of a spec with these properties under these rules. */
function faults(properties: object, spec: object, ...rules: string[]): string[] {
  const schema = { type: "object", properties: { spec: { type: "object", properties, ...rulesOf(...rules) } } };
  return check(schema, { metadata: {}, spec });
}

function check(schema: object, object: object): string[] {
  const run = ruleCheckOf(schema as Schema);
  return run === undefined ? ["no rules"] : atOnce(run(object as KubeObject)).map(formatFieldError);
}

const set = (items: object): object => ({ type: "array", "x-kubernetes-list-type": "set", items });
const list = (items: object): object => ({ type: "array", items });
const pair = { type: "object", properties: { key: { type: "string" }, value: { type: "integer" } } };
const map = { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"], items: pair };
const strings = { type: "string" };

for (const { name, properties, spec, rules } of [
  {
    name: "names that are no identifiers are escaped",
    properties: {
      "a-b": strings,
      "c.d": strings,
      "e/f": strings,
      g__h: strings,
      namespace: strings,
      "1st": strings,
      __proto__x: strings,
    },
    spec: { "a-b": "1", "c.d": "2", "e/f": "3", g__h: "4", namespace: "5", "1st": "6" },
    rules: [
      "self.a__dash__b == '1' && self.c__dot__d == '2' && self.e__slash__f == '3'",
      "self.g__underscores__h == '4' && self.__namespace__ == '5'",
      "has(self.a__dash__b) && !has(self.__underscores__proto__underscores__x)",
    ],
  },
  {
    name: "formats have specific types",
    properties: {
      wait: { type: "string", format: "duration" },
      words: { type: "string", format: "duration" },
      day: { type: "string", format: "date" },
      at: { type: "string", format: "date-time" },
      data: { type: "string", format: "byte" },
      mail: { type: "string", format: "email" },
    },
    spec: {
      wait: "90s",
      words: "3 hours 2 min",
      day: "2020-02-29",
      at: "2020-02-29T12:00:00+02:00",
      data: "aGk=",
      mail: "a@b.c",
    },
    rules: [
      "self.wait == duration('1m30s') && self.wait < self.words && self.words == duration('182m')",
      "self.day.getDayOfMonth() == 28 && self.at > self.day && self.at - self.day == duration('10h') && self.at.getHours() == 12",
      "string(self.data) == 'hi' && self.mail.endsWith('.c')",
    ],
  },
  {
    name: "numbers are doubles and integers ints, whatever is written",
    properties: {
      ...{ ratio: { type: "number" }, whole: { type: "number" }, huge: { type: "number" } },
      ...{ count: { type: "integer" }, big: { type: "integer" } },
    },
    spec: { ratio: 1.5, whole: 2, huge: 9223372036854775807n, count: 3, big: 9223372036854775807n },
    rules: [
      "self.huge == 9223372036854775807.0",
      "self.ratio + self.whole == 3.5",
      "self.count / 2 == 1",
      "self.big == 9223372036854775807",
    ],
  },
  {
    name: "an int-or-string is told apart by its type",
    properties: { a: { "x-kubernetes-int-or-string": true }, b: { "x-kubernetes-int-or-string": true } },
    spec: { a: 5, b: "50%" },
    rules: [
      "type(self.a) == int ? self.a < 6 : self.a == '5%'",
      "type(self.b) == string && int(self.b.replace('%', '')) == 50",
      "self.b == 'x' || self.a == 5",
    ],
  },
  {
    name: "null is as good as absent in objects, and is there in maps and lists",
    properties: {
      gone: { type: "string", nullable: true },
      map: { type: "object", additionalProperties: { type: "string", nullable: true } },
      list: list({ type: "string", nullable: true }),
    },
    spec: { gone: null, map: { a: null, b: "x" }, list: [null, "x"] },
    rules: ["!has(self.gone)", "has(self.map.a) && 'a' in self.map && self.map.size() == 2", "self.list.size() == 2"],
  },
  {
    name: "maps are indexed by key",
    properties: { map: { type: "object", additionalProperties: { type: "integer" } } },
    spec: { map: { "a-b": 1, ["__proto__"]: 2, c: 3 } },
    rules: [
      "self.map['a-b'] == 1 && self.map.c == 3",
      "self.map.all(k, self.map[k] > 0)",
      "!('d' in self.map) && !has(self.map.d)",
      "self.map['__proto__'] == 2 && has(self.map.__proto__) && {'__proto__': 2}['__proto__'] == 2",
      "!('constructor' in self.map) && !has(self.map.toString) && !('constructor' in {'a': 1})",
    ],
  },
  {
    name: "maps that keep unknown fields are maps",
    properties: {
      map: { type: "object", additionalProperties: { type: "integer" }, "x-kubernetes-preserve-unknown-fields": true },
    },
    spec: { map: { a: 1, b: 2 } },
    rules: ["self.map['a'] == 1 && self.map.all(k, self.map[k] < 3) && self.map.size() == 2"],
  },
  {
    name: "sets have no order and grow by what they lack",
    properties: { a: set(strings), b: set(strings), c: set(strings), p: list(set(pair)) },
    spec: {
      ...{ a: ["x", "y"], b: ["y", "x"], c: ["y", "z"] },
      p: [[{ key: "a", value: 1 }], [{ value: 1, key: "a" }]],
    },
    rules: [
      "self.p[0] == self.p[1] && (self.p[0] + self.p[1]).size() == 1",
      "self.a == self.b && self.b == self.a",
      "self.a != self.c",
      "self.a + self.c == ['z', 'y', 'x']",
      "(self.a + self.c).size() == 3",
    ],
  },
  {
    name: "lists of maps are compared by key, and what is added takes the place of what has its key",
    properties: { m: map, o: list(map), n: list(list(strings)) },
    spec: {
      m: [
        { key: "a", value: 1 },
        { key: "b", value: 2 },
      ],
      o: [
        [
          { key: "a", value: 1 },
          { key: "b", value: 2 },
        ],
        [{ key: "a", value: 9 }],
      ],
      n: [["x"], ["x", "y"]],
    },
    rules: [
      "(self.o[0] + self.o[1]).map(e, e.value) == [9, 2]",
      "self.m == self.m && self.m + self.m == self.m",
      "self.m + [self.m[1], self.m[0]] == [self.m[1], self.m[0]]",
      "(self.m.filter(e, e.key == 'b') + self.m).size() == 3",
      "(self.m + self.m.filter(e, e.key == 'b')).map(e, e.key) == ['a', 'b']",
      "self.m.exists(e, e == self.m[1]) && self.m[0] in self.m && !(self.m[0] == self.m[1])",
      "self.n[0] != self.n[1] && self.n[0] + ['y'] == self.n[1] && ['x'] in self.n",
    ],
  },
  {
    name: "a unit of a duration has several names, and several of them add up",
    properties: { a: { type: "string", format: "duration" }, b: { type: "string", format: "duration" } },
    spec: { a: "1 HR 2 Wk", b: "3 nanoseconds 4 micro 5 millis" },
    rules: ["self.a == duration('337h')", "self.b == duration('5004003ns')"],
  },
  {
    name: "an empty text has a value in each format that it has a value in",
    properties: { data: { type: "string", format: "byte" }, at: { type: "string", format: "date-time" } },
    spec: { data: "", at: "" },
    rules: ["size(self.data) == 0", "self.at == timestamp('1970-01-01T00:00:00Z')"],
  },
  {
    name: "sets and lists by keys of another size are other ones, and what they are joined to is one as well",
    properties: { a: set(strings), c: set(strings), m: map },
    spec: {
      a: ["x", "y"],
      c: ["y", "z"],
      m: [
        { key: "a", value: 1 },
        { key: "b", value: 2 },
      ],
    },
    rules: [
      "self.a != ['x'] && self.a != ['x', 'y', 'z']",
      "((self.a + self.c) + self.a).size() == 3 && self.a + self.c == self.c + self.a",
      "((self.m + self.m) + self.m).size() == 2 && self.m != [self.m[0]]",
    ],
  },
  {
    name: "unknown fields that are kept are compared where both have them, and counted",
    properties: { l: list({ type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { known: strings } }) },
    spec: { l: [{ known: "k", x: [1] }, { known: "k", x: [2] }, { known: "k", x: [1] }, { known: "k" }] },
    rules: ["self.l[0] == self.l[2] && self.l[0] != self.l[1]", "self.l[0] != self.l[3] && self.l[3] != self.l[0]"],
  },
  {
    name: "maps are equal with the same values at the same keys",
    properties: { l: list({ type: "object", additionalProperties: { type: "integer" } }) },
    spec: { l: [{ a: 1, b: 2 }, { b: 2, a: 1 }, { a: 1 }, { a: 1, c: 2 }, { a: 1, b: 3 }] },
    rules: ["self.l[0] == self.l[1]", "self.l.exists_one(x, x == self.l[2])", "self.l.filter(x, x != self.l[0]).size() == 3"],
  },
  {
    name: "fields of null are absent on both sides of a comparison",
    properties: { l: list(pair) },
    spec: {
      l: [
        { key: null, value: 1 },
        { key: null, value: 1 },
        { key: "a", value: null },
      ],
    },
    rules: ["self.l[0] == self.l[1]", "self.l[0] != self.l[2] && self.l[2] != self.l[0]"],
  },
  {
    name: "sets of lists, and lists by keys that items lack, are compared like others",
    properties: { s: set(list(strings)), m: map },
    spec: { s: [["a"], ["b", "c"]], m: [{ value: 1 }, { key: "", value: 2 }] },
    rules: [
      "self.s == [['b', 'c'], ['a']] && self.s != [['a'], ['c', 'b']] && (self.s + [['a'], ['d']]).size() == 3",
      "(self.m + [self.m[0]]).size() == 2",
    ],
  },
  {
    name: "the metadata that an embedded resource declares whole is as it is declared",
    properties: {
      r: {
        type: "object",
        "x-kubernetes-embedded-resource": true,
        properties: {
          ...{ kind: strings, apiVersion: strings },
          metadata: {
            type: "object",
            properties: { name: strings, generateName: strings, labels: { type: "object", additionalProperties: strings } },
          },
        },
      },
    },
    spec: { r: { kind: "K", apiVersion: "v1", metadata: { name: "n", generateName: "g", labels: { a: "b" } } } },
    rules: ["self.r.kind == 'K' && self.r.metadata.generateName == 'g' && self.r.metadata.labels['a'] == 'b'"],
  },
  {
    name: "objects of other fields are other ones, in whatever number",
    properties: { l: list(pair) },
    spec: { l: [{ key: "a" }, { value: 1 }, { key: "a", value: 1 }] },
    rules: ["self.l[0] != self.l[1] && self.l[1] != self.l[0]", "self.l[0] != self.l[2] && self.l[2] != self.l[1]"],
  },
  {
    name: "nothing that the schema does not know is seen",
    properties: { open: { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { known: strings } } },
    spec: { open: { known: "a", unknown: "b" } },
    rules: ["self.open.known == 'a'", "self.open == self.open"],
  },
]) {
  for (const rule of rules) test(`${name}: ${rule}`, () => assert.deepEqual(faults(properties, spec, rule), []));
}

const ofMap = { type: "object", additionalProperties: strings };
for (const [type, value, rule, want] of [
  [strings, 1, "self.a == ''", "invalid data, expected string, got int64"],
  [strings, 9007199254740993n, "self.a == ''", "invalid data, expected string, got int64"],
  [strings, 1.5, "self.a == ''", "invalid data, expected string, got float64"],
  [strings, true, "self.a == ''", "invalid data, expected string, got bool"],
  [strings, [], "self.a == ''", "invalid data, expected string, got []interface {}"],
  [strings, {}, "self.a == ''", "invalid data, expected string, got map[string]interface {}"],
  [{ type: "boolean" }, "x", "self.a", "invalid data, expected bool, got string"],
  [{ type: "number" }, "x", "self.a > 1.0", "invalid data, expected float, got string"],
  [{ type: "integer" }, 1.5, "self.a > 1", "invalid data, expected int, got float64"],
  [ofMap, "x", "self.a == {}", "invalid data, expected a map for the provided schema with type=object"],
  [ofMap, [], "self.a == {}", "invalid data, expected a map for the provided schema with type=object"],
  [list(strings), {}, "self.a == []", "invalid data, expected an array for the provided schema with type=array"],
  [
    { "x-kubernetes-int-or-string": true },
    1.5,
    "self.a == 1",
    "invalid data, expected XIntOrString value to be either a string or integer",
  ],
] as const) {
  test(`a value ${typeof value === "bigint" ? value : JSON.stringify(value)} of ${JSON.stringify(type)}: ${want}`, () => {
    const [reported = "", ...others] = faults({ a: type }, { a: value }, rule);
    assert.ok(reported.endsWith(`: ${want} evaluating rule: ${rule}`), reported);
    assert.deepEqual(others, []);
  });
}

for (const { name, properties, spec, rule, want } of [
  {
    name: "an object that is asked for a number",
    properties: { a: pair },
    spec: { a: { key: "x" } },
    rule: "dyn(1) in dyn(self.a)",
    want: /'no such overload': call arguments did not match a supported operator, function or macro signature for rule: dyn\(1\)/,
  },
  {
    name: "an object that is compared with a map",
    properties: { a: pair },
    spec: { a: { key: "x" } },
    rule: "dyn(self.a) == {'key': 'x'}",
    want: /'no such overload': call arguments did not match a supported operator, function or macro signature for rule: dyn\(self/,
  },
  {
    name: "a rule that does not hold",
    properties: { a: { type: "integer" } },
    spec: { a: 1 },
    rule: " self.a > 1 ",
    want: 'spec: Invalid value: map[string]interface {}{"a":1}: failed rule: self.a > 1',
  },
  {
    name: "a missing field",
    properties: { a: strings },
    spec: {},
    rule: "self.a == ''",
    want: "spec: Invalid value: map[string]interface {}{}: no such key: a evaluating rule: self.a == ''",
  },
  {
    name: "a place that is not there",
    properties: { a: list(strings) },
    spec: { a: ["x"] },
    rule: "self.a[1] == ''",
    want: 'spec: Invalid value: map[string]interface {}{"a":[]interface {}{"x"}}: index out of bounds: 1 evaluating rule: self.a[1] == \'\'',
  },
  {
    name: "a place that is not there, of which a field is looked for",
    properties: { a: list(pair) },
    spec: { a: [{ key: "x" }] },
    rule: "has(self.a[1].key)",
    want: 'spec: Invalid value: map[string]interface {}{"a":[]interface {}{map[string]interface {}{"key":"x"}}}: index out of bounds: 1 evaluating rule: has(self.a[1].key)',
  },
  {
    name: "a function that does not fit a value of any type",
    properties: { a: { "x-kubernetes-int-or-string": true } },
    spec: { a: 1 },
    rule: "self.a.contains('x')",
    want: "spec: Invalid value: map[string]interface {}{\"a\":1}: 'no such overload: contains': call arguments did not match a supported operator, function or macro signature for rule: self.a.contains('x')",
  },
  {
    name: "a value that the schema does not allow either",
    properties: { a: { type: "integer" } },
    spec: { a: "x" },
    rule: "self.a > 1",
    want: 'spec: Invalid value: map[string]interface {}{"a":"x"}: invalid data, expected int, got string evaluating rule: self.a > 1',
  },
  {
    name: "null where there may be none",
    properties: { a: list(strings) },
    spec: { a: [null] },
    rule: "self.a[0] == ''",
    want: "spec: Invalid value: map[string]interface {}{\"a\":[]interface {}{interface {}(nil)}}: invalid data, got null for schema with nullable=false evaluating rule: self.a[0] == ''",
  },
  {
    name: "a map that is asked for a number",
    properties: { a: { type: "object", additionalProperties: strings } },
    spec: { a: { x: "y" } },
    rule: "dyn(1) in self.a",
    want: /'no such overload': call arguments did not match a supported operator, function or macro signature for rule: dyn\(1\)/,
  },
  {
    name: "the variable rule, which is declared and has no value",
    properties: { a: strings },
    spec: {},
    rule: "rule.a == ''",
    want: "spec: Invalid value: map[string]interface {}{}: no such attribute: rule evaluating rule: rule.a == ''",
  },
  {
    name: "a field that is written without its escape",
    properties: { a__b: strings },
    spec: { a__b: "x" },
    rule: "self.a__b == 'x'",
    want: /rule compile error: compilation failed: ERROR: <input>:1:5: undefined field 'a__b'/,
  },
  {
    name: "an unknown field",
    properties: { open: { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { known: strings } } },
    spec: { open: { unknown: "b" } },
    rule: "self.open.unknown == 'b'",
    want: /rule compile error: compilation failed: ERROR: <input>:1:10: undefined field 'unknown'/,
  },
]) {
  test(`reports ${name}`, () => {
    const reported = faults(properties, spec, rule);
    assert.equal(reported.length, 1);
    if (typeof want === "string") assert.equal(reported[0], want);
    else assert.match(reported[0] as string, want);
  });
}

test("rules may be at any level of the schema, and each error names the path of the invalid value", () => {
  const rule = { rule: "self < 2", message: "too much" };
  const small = { type: "integer", "x-kubernetes-validations": [rule] };
  const schema = {
    type: "object",
    properties: {
      list: list(small),
      map: { type: "object", additionalProperties: list(small) },
      one: { ...small, nullable: true },
    },
  };
  assert.deepEqual(check(schema, { list: [1, 2], map: { "a.b": [3] }, one: 4 }), [
    "list[1]: Invalid value: 2: too much",
    "map[a.b][0]: Invalid value: 3: too much",
    "one: Invalid value: 4: too much",
  ]);
  assert.deepEqual(check(schema, { list: [1], map: {}, one: null }), []);
});

test("names and kinds of a resource, and of those within it, are there whatever the schema says", () => {
  const resource = { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true };
  const template = { ...resource, ...rulesOf("self.kind == 'Pod' && self.metadata.name != ''") };
  const schema = {
    type: "object",
    properties: { template },
    ...rulesOf("self.apiVersion + self.kind + self.metadata.name == 'v1Aa'"),
  };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" } };
  assert.deepEqual(check(schema, { apiVersion: "v1", kind: "A", metadata: { name: "a" }, template: pod }), []);
  assert.equal(
    check(schema, { apiVersion: "v1", kind: "B", metadata: { name: "a" }, template: { ...pod, kind: "Job" } }).length,
    2,
  );
  const labels = { type: "object", ...rulesOf("self.metadata.labels.size() == 0") };
  assert.match(check(labels, { metadata: {} })[0] ?? "", /undefined field 'labels'/);
});

test("what an embedded resource has is there in lists and maps, and a name's beginning is there beside a name", () => {
  const resource = { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true };
  const named = { type: "object", properties: { name: strings } };
  const schema = {
    type: "object",
    properties: {
      ...{ apiVersion: strings, kind: strings, metadata: named },
      list: { ...list(resource), ...rulesOf("self.all(one, one.kind == 'Pod')") },
      map: { type: "object", additionalProperties: resource, ...rulesOf("self.all(key, self[key].kind == 'Pod')") },
    },
    ...rulesOf("!has(self.metadata.generateName)"),
  };
  const pod = { apiVersion: "v1", kind: "Pod" };
  assert.deepEqual(check(schema, { metadata: {}, list: [pod, pod], map: { a: pod } }), []);
  assert.equal(check(schema, { metadata: { generateName: "a" }, list: [pod, {}], map: { a: { kind: "Job" } } }).length, 3);
});

test("an empty rule and one that cannot be compiled do not end the rules behind them", () => {
  const reported = faults({ n: { type: "integer", ...rulesOf("", "self >", "self > 1", "self > 2") } }, { n: 1 }, "true");
  assert.equal(reported.length, 3);
  assert.match(reported[0] ?? "", /rule compile error: compilation failed/);
  assert.match(reported[2] ?? "", /failed rule: self > 2$/);
});

test("when the items of a list have used up the budget, the rest of them is not looked at", () => {
  const heavy = "self.all(a, self.all(b, a + b >= 0))";
  const numbers = Array.from({ length: 250 }, (_, i) => i);
  const lists = { type: "array", items: { ...list({ type: "integer" }), ...rulesOf(heavy, "true") } };
  const values = Array.from({ length: 40 }, () => numbers);
  for (const [properties, spec] of [
    [{ l: lists }, { l: values }],
    [{ l: { type: "object", additionalProperties: lists.items } }, { l: Object.fromEntries(values.entries()) }],
  ] as const) {
    const reported = faults(properties, spec, "true");
    assert.equal(reported.length, 1);
    assert.match(reported[0] ?? "", /validation failed due to running out of cost budget/);
  }
});

test("a rule's message names it where it cannot be evaluated, and the object itself has no path", () => {
  const schema = { type: "object", "x-kubernetes-validations": [{ rule: "self.metadata.name == ''", message: " a name " }] };
  assert.deepEqual(check(schema, { metadata: {} }), [
    '<nil>: Invalid value: map[string]interface {}{"metadata":map[string]interface {}{}}: no such key: name evaluating rule: a name',
  ]);
  assert.deepEqual(check(schema, { metadata: { name: "x" } }), [
    '<nil>: Invalid value: map[string]interface {}{"metadata":map[string]interface {}{"name":"x"}}:  a name ',
  ]);
});

test("rules about values that no rule can see are passed over", () => {
  const unseen = { "x-kubernetes-preserve-unknown-fields": true, ...rulesOf("false") };
  const schema = { type: "object", properties: { any: unseen, list: { ...list({ ...unseen }), ...rulesOf("false") } } };
  assert.deepEqual(check(schema, { any: 1, list: [1] }), []);
  assert.deepEqual(check({ type: "object", properties: { a: strings } }, { a: "" }), ["no rules"]);
});

test("all rules together may not take too long either", () => {
  const slow = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))";
  const heavy = "self.all(a, self.all(b, a + b >= 0))";
  const numbers = Array.from({ length: 250 }, (_, i) => i);
  const properties = {
    n: { ...list({ type: "integer" }), ...rulesOf(slow) },
    z: { ...list({ type: "integer" }), ...rulesOf("false") },
  };
  const reported = faults(properties, { n: numbers, z: [] }, "true");
  assert.equal(reported.length, 1);
  assert.match(
    reported[0] ?? "",
    /^spec.n: .*: 'operation cancelled: actual cost limit exceeded': no further validation rules will be run/,
  );
  const many = faults(
    { n: { ...list({ type: "integer" }), ...rulesOf(...Array(9).fill(heavy), "false") } },
    { n: numbers },
    "true",
  );
  assert.equal(many.length, 1);
  assert.match(many[0] ?? "", /: validation failed due to running out of cost budget, no further validation rules will be run$/);
});

test("of a large object that many rules refuse a bounded number of errors is reported", () => {
  const large = "x".repeat(1_000_000);
  const reported = faults({ n: { type: "string", ...rulesOf(...Array(20).fill("false")) } }, { n: large }, "true");
  assert.equal(reported.length, 4);
  assert.match(
    reported[3] ?? "",
    /^spec.n: Invalid value: "string": validation failed due to running out of cost budget, no further validation rules/,
  );
  const many = list({ type: "integer", ...rulesOf(`${"true && ".repeat(1000)}false`) });
  assert.ok(faults({ n: many }, { n: Array(1000).fill(1) }, "true").length < 400);
});

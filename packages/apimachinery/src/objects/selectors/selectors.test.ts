import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "../../testing/cpu-time.ts";
import { StatusError } from "../errors/status-error.ts";
import { FieldSelector } from "./field-selector.ts";
import { LabelSelector } from "./label-selector.ts";

for (const { text, canonical, yes = [], no = [] } of [
  { text: "", canonical: "", yes: [{}, { a: "b" }] },
  { text: "x=a", canonical: "x=a", yes: [{ x: "a" }], no: [{}, { x: "b" }] },
  { text: "x==a, y != b", canonical: "x==a,y!=b", yes: [{ x: "a" }, { x: "a", y: "c" }], no: [{ x: "a", y: "b" }] },
  { text: "x=", canonical: "x=", yes: [{ x: "" }], no: [{}] },
  { text: "x,!y", canonical: "x,!y", yes: [{ x: "" }], no: [{}, { x: "1", y: "" }] },
  { text: "x in (b,a)", canonical: "x in (a,b)", yes: [{ x: "a" }], no: [{ x: "c" }, {}] },
  { text: "x notin (a,)", canonical: "x notin (,a)", yes: [{}, { x: "b" }], no: [{ x: "a" }, { x: "" }] },
  { text: "x in ()", canonical: "x in ()", yes: [{ x: "" }] },
  { text: "x>5,y<3", canonical: "x>5,y<3", yes: [{ x: "6", y: "2" }], no: [{ x: "5", y: "2" }, { x: "six", y: "2" }, {}] },
  { text: "x>5", canonical: "x>5", yes: [{ x: "6" }, { x: "+6" }], no: [{ x: "5" }, { x: "99999999999999999999" }] },
  { text: "x<5", canonical: "x<5", yes: [{ x: "4" }, { x: "-9" }], no: [{ x: "5" }, { x: "-99999999999999999999" }] },
  { text: "x in (,)", canonical: "x in ()", yes: [{ x: "" }], no: [{ x: "a" }, {}] },
  { text: "x in (a,,b)", canonical: "x in (,a,b)", yes: [{ x: "" }, { x: "b" }], no: [{ x: "c" }] },
  { text: "x\tin\r\n(a)", canonical: "x in (a)", yes: [{ x: "a" }] },
  { text: "x!=", canonical: "x!=", yes: [{}, { x: "a" }], no: [{ x: "" }] },
  { text: "in in (notin)", canonical: "in in (notin)", yes: [{ in: "notin" }] },
  { text: "notin", canonical: "notin", yes: [{ notin: "" }] },
  { text: "z=1,a=2", canonical: "a=2,z=1", yes: [{ a: "2", z: "1" }] },
  { text: "constructor", canonical: "constructor", no: [{}] },
  { text: "example.com/app=web", canonical: "example.com/app=web", yes: [{ "example.com/app": "web" }] },
]) {
  test(`label selector ${JSON.stringify(text)}`, () => {
    const selector = LabelSelector.parse(text);
    assert.equal(selector.toString(), canonical);
    assert.equal(LabelSelector.parse(canonical).toString(), canonical);
    for (const labels of yes) assert.ok(selector.matches(labels as never), `takes ${JSON.stringify(labels)}`);
    for (const labels of no) assert.ok(!selector.matches(labels as never), `leaves ${JSON.stringify(labels)}`);
  });
}

const nameRule =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
for (const [text, want] of [
  ["a b c", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
  [
    "x=a||y=b",
    "unable to parse requirement: values[0][x]: Invalid value: \"a||y\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
  ],
  ["x=a,", "found '', expected: identifier after ','"],
  ["x=a,,y", "found ',', expected: identifier after ','"],
  [
    "x>9223372036854775808",
    "unable to parse requirement: values[0]: Invalid value: \"9223372036854775808\": for 'Gt', 'Lt' operators, the value must be an integer",
  ],
  [",x", "found ',', expected: !, identifier, or 'end of string'"],
  ["x in a", "unable to parse requirement: found 'a' expected: '('"],
  ["x in (a", "unable to parse requirement: found '', expected: ',' or ')'"],
  ["x in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"],
  ["!x=a", "found '=', expected: ',' or 'end of string'"],
  ["x>a", "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer"],
  ["-x=1", `unable to parse requirement: <nil>: Invalid value: "-x": ${nameRule}`],
] as const) {
  test(`refuses the label selector ${text}`, () => {
    assert.throws(
      () => LabelSelector.parse(text),
      (err) => err instanceof StatusError && err.code === 400 && err.message === want,
    );
  });
}

test("makes selectors from sets and from objects", () => {
  assert.equal(LabelSelector.fromSet({ b: "1", a: "2" }).toString(), "a=2,b=1");
  assert.equal(LabelSelector.fromSet(undefined).empty, true);
  assert.equal(LabelSelector.fromObject(undefined).matches({}), false);
  assert.equal(LabelSelector.fromObject({}).empty, true);
  const selector = LabelSelector.fromObject({
    matchLabels: { app: "web" },
    matchExpressions: [
      { key: "tier", operator: "In", values: ["b", "a"] },
      { key: "old", operator: "DoesNotExist" },
    ],
  });
  assert.equal(selector.toString(), "app=web,!old,tier in (a,b)");
  assert.ok(selector.matches({ app: "web", tier: "a" }));
  assert.throws(
    () => LabelSelector.fromObject({ matchExpressions: [{ key: "a", operator: "Like" }] }),
    /"Like" is not a valid label selector operator/,
  );
  for (const [expression, message] of [
    [{ key: "a", operator: "In" }, "values: Invalid value: []string{}: for 'in', 'notin' operators, values set can't be empty"],
    [
      { key: "a", operator: "NotIn", values: [] },
      "values: Invalid value: []string{}: for 'in', 'notin' operators, values set can't be empty",
    ],
    [
      { key: "a", operator: "Exists", values: ["x"] },
      'values: Invalid value: []string{"x"}: values set must be empty for exists and does not exist',
    ],
    [
      { key: "a", operator: "DoesNotExist", values: ["x"] },
      'values: Invalid value: []string{"x"}: values set must be empty for exists and does not exist',
    ],
  ] as const) {
    assert.throws(() => LabelSelector.fromObject({ matchExpressions: [expression as never] }), { message });
  }
  assert.throws(
    () => LabelSelector.fromObject({ matchExpressions: [{ key: "a", operator: "In", values: ["b", "-"] }] }),
    /^StatusError: values\[1\]\[a\]: Invalid value: "-": a valid label/,
  );
});

test("returns the value that a label must have", () => {
  assert.equal(LabelSelector.parse("a=1,b in (x)").requiresExact("b"), "x");
  assert.equal(LabelSelector.parse("a in (x,y)").requiresExact("a"), undefined);
  assert.equal(LabelSelector.parse("a").requiresExact("a"), undefined);
  assert.deepEqual(
    ["a==1", "a!=1", "a notin (1)", "a>1", "!a", "b=1"].map((text) => LabelSelector.parse(text).requiresExact("a")),
    ["1", undefined, undefined, undefined, undefined, undefined],
  );
});

test("joins selectors", () => {
  assert.equal(LabelSelector.parse("b=1").and(LabelSelector.parse("a")).toString(), "a,b=1");
  assert.equal(LabelSelector.nothing.and(LabelSelector.everything).matches({}), false);
  assert.equal(LabelSelector.everything.and(LabelSelector.nothing).matches({}), false);
  assert.equal(LabelSelector.nothing.empty, false);
});

for (const { text, canonical = text, yes = [], no = [] } of [
  { text: "", yes: [{}] },
  { text: "metadata.name=a", yes: [{ "metadata.name": "a" }], no: [{}] },
  { text: "x!=Running,a==b", canonical: "a=b,x!=Running", yes: [{ a: "b" }], no: [{ a: "b", x: "Running" }] },
  { text: "a=", yes: [{}, { a: "" }], no: [{ a: "b" }] },
  { text: "a=x\\,y\\=z\\\\", yes: [{ a: "x,y=z\\" }] },
  { text: "b=2,a=1", canonical: "a=1,b=2", yes: [{ a: "1", b: "2" }] },
  { text: "a!=1", yes: [{}, { a: "2" }], no: [{ a: "1" }] },
  { text: "a=x\\,y\\=z", yes: [{ a: "x,y=z" }] },
  { text: "a=1,,b=2", canonical: "a=1,b=2", yes: [{ a: "1", b: "2" }] },
]) {
  test(`field selector ${JSON.stringify(text)}`, () => {
    const selector = FieldSelector.parse(text);
    assert.equal(selector.toString(), canonical);
    for (const fields of yes) assert.ok(selector.matches(fields as never));
    for (const fields of no) assert.ok(!selector.matches(fields));
  });
}

for (const [text, want] of [
  ["a", "invalid selector: 'a'; can't understand 'a'"],
  ["a=b\\,c=d", "invalid field selector: unescaped character in value: 61"],
  ["a=b=c", "invalid field selector: unescaped character in value: 61"],
  ["a=\\x", "invalid field selector: invalid escape sequence: \\x"],
  ["a=b\\", "invalid field selector: invalid escape sequence: \\"],
] as const) {
  test(`refuses the field selector ${text}`, () => {
    assert.throws(
      () => FieldSelector.parse(text),
      (err) => err instanceof StatusError && err.code === 400 && err.message === want,
    );
  });
}

test("a field selector without field and value matches everything", () => {
  for (const text of ["=", "!=", ",==,"]) assert.equal(FieldSelector.parse(text).empty, true, text);
  assert.equal(FieldSelector.parse("=x").empty, false);
});

test("a selector with a hundred thousand values matches in constant time", () => {
  const values = Array.from({ length: 100_000 }, (_, i) => `v${i}`);
  const taking = LabelSelector.fromObject({ matchExpressions: [{ key: "a", operator: "In", values }] });
  const leaving = LabelSelector.fromObject({ matchExpressions: [{ key: "a", operator: "NotIn", values }] });
  const tookMs = cpuMsOf(() => {
    for (let i = 0; i < 50_000; i++) {
      assert.equal(taking.matches({ a: "v99999" }), true);
      assert.equal(leaving.matches({ a: "none" }), true);
    }
  });
  assert.equal(taking.matches({ a: "none" }), false);
  assert.equal(leaving.matches({ a: "v99999" }), false);
  // A linear search would take many seconds.
  assert.ok(tookMs < 1000, `${tookMs} ms`);
});

interface Terms {
  readonly name: string;
  readonly selector: { matches(of: Readonly<Record<string, string>>): boolean };
  readonly yes: Readonly<Record<string, string>> | undefined;
  readonly no: readonly Readonly<Record<string, string>>[];
}

const many = Array.from({ length: 20_000 }, (_, i) => i);

for (const { name, selector, yes, no } of [
  {
    name: "labels that an object must not have",
    selector: LabelSelector.parse(many.map((i) => (i % 2 ? `!k${i}` : `k${i}!=v`)).join(",")),
    yes: { a: "b", k2: "other" },
    no: [{ k1: "" }, { k2: "v" }],
  },
  {
    name: "values that one label must not have",
    selector: LabelSelector.parse(`${many.map((i) => `k!=v${i}`).join(",")},k notin (a,b),k`),
    yes: { k: "other" },
    no: [{ k: "v19999" }, { k: "b" }, {}],
  },
  {
    name: "labels that an object must have",
    selector: LabelSelector.parse(
      many
        .slice(0, 17)
        .map((i) => `k${i} in (a,b)`)
        .join(","),
    ),
    yes: Object.fromEntries(many.slice(0, 18).map((i) => [`k${i}`, "b"])),
    no: [
      {},
      { k0: "a" },
      Object.fromEntries(many.slice(0, 17).map((i) => [`k${i}`, i === 16 ? "c" : "a"])),
      Object.fromEntries(many.slice(1, 20).map((i) => [`k${i}`, "a"])), // more labels than are needed, and not the first one
    ],
  },
  {
    name: "numbers",
    selector: LabelSelector.parse(
      `k>5,${many
        .slice(0, 20)
        .map((i) => `!x${i}`)
        .join(",")}`,
    ),
    yes: { k: "6" },
    no: [{ k: "5" }, { k: "6", x3: "" }, {}],
  },
  {
    name: "values that a field must not have",
    selector: FieldSelector.parse(many.map((i) => `metadata.name!=n${i}`).join(",")),
    yes: { "metadata.name": "other" },
    no: [{ "metadata.name": "n0" }, { "metadata.name": "n19999" }],
  },
  {
    name: "one value of a field, said twice, and not another one",
    selector: FieldSelector.parse("a=1,a=1,a!=2,b="),
    yes: { a: "1" },
    no: [{ a: "2" }, {}, { a: "1", b: "x" }],
  },
  { name: "two values of one field", selector: FieldSelector.parse("a=1,a=2"), yes: undefined, no: [{ a: "1" }, { a: "2" }, {}] },
] as Terms[])
  test(`a selector of very many terms matches as its terms do, in linear time: ${name}`, () => {
    const tookMs = cpuMsOf(() => {
      for (const fields of no) assert.equal(selector.matches(fields), false, JSON.stringify(fields).slice(0, 100));
      if (yes !== undefined) for (let i = 0; i < 20_000; i++) assert.equal(selector.matches(yes), true);
    });
    // A linear search would take many seconds.
    assert.ok(tookMs < 1000, `${tookMs} ms`);
  });

test("the selector of a cached object is made once when it has many requirements", () => {
  const few = { matchLabels: { app: "web" } };
  const many = { matchLabels: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`l${i}`, "v"])) };
  assert.equal(LabelSelector.ofCached(many), LabelSelector.ofCached(many));
  assert.equal(LabelSelector.ofCached(many).matches(many.matchLabels), true);
  assert.notEqual(LabelSelector.ofCached(few), LabelSelector.ofCached(few));
  assert.equal(LabelSelector.ofCached(undefined).matches({}), false);
  assert.throws(
    () => LabelSelector.ofCached({ matchExpressions: [{ key: "a", operator: "Like" }] }),
    /not a valid label selector/,
  );
});

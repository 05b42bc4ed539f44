import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "../../testing/cpu-time.ts";
import { parseYaml, toYaml, yamlDocuments } from "./yaml.ts";

for (const [text, want] of [
  ["a: yes\nb: off\nc: 017\nd: 1_000\ne: 0x10", { a: true, b: false, c: 15, d: 1000, e: 16 }],
  ["a: 2021-12-07\nb: 2021-12-07T18:16:20Z", { a: "2021-12-07", b: "2021-12-07T18:16:20Z" }],
  ["a: 22:22\nb: '1'\nc: ~", { a: "22:22", b: "1", c: null }],
  ["x: &x {a: 1}\nz: {<<: *x, b: 2}", { x: { a: 1 }, z: { a: 1, b: 2 } }],
  ["a: 9007199254740993", { a: 9007199254740993n }],
  ["a: 9007199254740991", { a: 9007199254740991 }],
  ["a: -9007199254740991", { a: -9007199254740991 }],
  ["1: a\ntrue: b", { "1": "a", true: "b" }],
  ["a: |\n  x\n  y\n", { a: "x\ny\n" }],
  ['{"a": [1, "b"]}', { a: [1, "b"] }],
  ["{a: [1, b]}", { a: [1, "b"] }],
  ["a: 1\na: 2", { a: 2 }],
  ["", null],
] as const) {
  test(`reads ${JSON.stringify(text)}`, () => assert.deepEqual(parseYaml(text), want));
}

test("treats __proto__ as an ordinary key", () => {
  const value = parseYaml("__proto__:\n  polluted: true\n") as object;
  assert.equal(JSON.stringify(value), '{"__proto__":{"polluted":true}}');
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
});

test("reads every document of a stream", () => {
  assert.deepEqual(yamlDocuments("---\na: 1\n---\n# nothing\n---\nb: 2\n"), [{ a: 1 }, { b: 2 }]);
  for (const next of ["b: 2", "b: c: d", "*b"]) assert.deepEqual(parseYaml(`a: 1\n---\n${next}\n`), { a: 1 }, "the first alone");
});

const bomb = [
  "a: &a [x,x,x,x,x,x,x,x,x]",
  ..."bcdefghi".split("").map((c, i) => `${c}: &${c} [${Array(9).fill(`*${"abcdefgh"[i]}`).join(",")}]`),
].join("\n");
for (const [name, text] of [
  ["a syntax error", "a: b: c"],
  ["a bomb of aliases", bomb],
  ["brackets without end", "[".repeat(1_000_000)],
  ["objects without end", "a: " + "{a: ".repeat(5_000)],
  ["infinity", "a: .inf"],
] as const) {
  test(`answers 400 to ${name}, and soon`, () => {
    const want = { code: 400, message: /^error converting YAML to JSON: / };
    const tookMs = cpuMsOf(() => assert.throws(() => parseYaml(text), want));
    assert.ok(tookMs < 1500, `${tookMs} ms`);
  });
}

test("writes sorted keys, plain lists and quotes only where it must", () => {
  const value = { b: ["x", { c: 1, a: null }], a: "true", text: "a\nb\n" };
  assert.equal(toYaml(value), 'a: "true"\nb:\n- x\n- a: null\n  c: 1\ntext: |\n  a\n  b\n');
});

test("sorts keys in Go's natural order", () => {
  const keys = [
    ..."- -1 _ 1 1_ 1a 01 2 9 10 100 A A- A1 A01 A2 A10 AB Aa a a-b a.b a0 a1 a2 a10 a100 a10b a1b aB ab aé b é".split(" "),
  ];
  const shuffled = keys.map((key, i) => [(i * 16) % 37, key] as const).sort(([a], [b]) => a - b);
  const text = toYaml(Object.fromEntries(shuffled.map(([, key]) => [key, 0])));
  assert.deepEqual(
    text
      .trim()
      .split("\n")
      .map((line) => line.replace(/^(["']?)(.*)\1: 0$/, "$2")),
    keys,
  );
});

test("writes built-in kinds as their JSON is", () => {
  assert.equal(
    toYaml({ kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a" }, data: { k: "v" } }),
    "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  creationTimestamp: null\n  name: a\n",
  );
});

test("quotes the key <<", () => {
  const value = { b: { "<<": { a: 1 } }, "<<": "x" };
  assert.deepEqual(parseYaml(toYaml(value)), value);
});

for (const { text, message } of [
  { text: "a: *x", message: "yaml: unknown anchor 'x' referenced" },
  { text: "a: b: c", message: "yaml: mapping values are not allowed in this context" },
  { text: "x: 1\na: b: c", message: "yaml: line 2: mapping values are not allowed in this context" },
  { text: "a: @x", message: "yaml: found character that cannot start any token" },
  { text: "a:\n  b: 1\n   c: 2\n", message: "yaml: line 3: mapping values are not allowed in this context" },
  { text: "a:\n- b\n  c: d\n", message: "yaml: line 3: mapping values are not allowed in this context" },
  { text: "a:\n  b: c\n d:\n", message: "yaml: line 2: did not find expected key" },
  { text: "a:\n\tb: c\n", message: "yaml: line 2: found character that cannot start any token" },
  { text: "a: 'x' y\n", message: "yaml: did not find expected key" },
  { text: "a: [1, 2\n", message: "yaml: line 1: did not find expected ',' or ']'" },
  { text: "[1, 2", message: "yaml: line 1: did not find expected ',' or ']'" },
  { text: "a: {b: 1\nc: 2\n", message: "yaml: line 1: did not find expected ',' or '}'" },
  { text: "a: }\n", message: "yaml: did not find expected node content" },
  { text: "a: b\nc\n", message: "yaml: line 3: could not find expected ':'" },
  { text: 'a: "\\q"\n', message: "yaml: found unknown escape character" },
  { text: "a: 'b\n", message: "yaml: line 2: found unexpected end of stream" },
  { text: "a: - b\n", message: "yaml: block sequence entries are not allowed in this context" },
  { text: "%foo\n---\na: 1\n", message: "yaml: found unknown directive name" },
  { text: "<<: 1\na: 2\n", message: "yaml: map merge requires map or sequence of maps as the value" },
  { text: "a: \u0001\n", message: "yaml: control characters are not allowed" },
  { text: '{"a":"\u007f"}', message: "yaml: control characters are not allowed" },
  { text: "a: -.inf", message: "json: unsupported value: -Inf" },
  { text: "~: a", message: "Unsupported map key of type: %!s(<nil>), key: <nil>" },
  { text: "[a]: b", message: "yaml: invalid map key" },
]) {
  test(`says what is wrong with ${JSON.stringify(text)} in Go's words`, () => {
    assert.throws(() => parseYaml(text), { code: 400, message: `error converting YAML to JSON: ${message}` });
  });
}

test("reads what it reads as Go does, where versions of YAML differ", () => {
  const texts = {
    "0o17": 15,
    "017": 15,
    "0b11": 3,
    "08": 8,
    "1_000": 1000,
    "1:30": "1:30",
    y: true,
    N: false,
    "0x": "0x",
    "=": "=",
    ".": ".",
    e1: "e1",
    E10: "E10",
    ".e1": ".e1",
    "._1": "._1",
    ".5": 0.5,
    "1.": 1,
    "-.5e1": -5,
    "1e3": 1000,
  };
  for (const [text, want] of Object.entries(texts)) assert.deepEqual(parseYaml(`a: ${text}`), { a: want }, text);
  assert.deepEqual(parseYaml("yes: 1\n0x10: 2\n1.5: 3\n2021-01-01: 4\n"), { true: 1, 16: 2, 1.5: 3, "2021-01-01": 4 });
});

test("reads the unquoted keys of managed fields", () => {
  const fields = { "f:data": { ".": {}, "f:e1": {} }, e1: "e1" };
  assert.deepEqual(parseYaml(toYaml(fields)), fields);
});

test("adds no line end to a block that the text ends in", () => {
  assert.deepEqual(parseYaml("a: |\n  x\n  y"), { a: "x\ny" });
  assert.deepEqual(parseYaml("a: |\n  x\n  y\n"), { a: "x\ny\n" });
  assert.deepEqual(parseYaml("a: |\n  x\nb: z"), { a: "x\n", b: "z" });
});

test("a long text that is a whole document is not folded before what would end the document", () => {
  for (const mark of ["---", "..."]) {
    const text = `${"word ".repeat(20)}${mark} more`;
    assert.equal(parseYaml(toYaml(text)), text);
    assert.equal(parseYaml(toYaml(`\u0001${text}`)), `\u0001${text}`);
  }
});

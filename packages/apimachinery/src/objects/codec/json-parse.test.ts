import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../process/event-loop/steps.ts";
import fc from "../../testing/fast-check.ts";
import { maxTextDepth, parseJsonInSteps, parseJsonText } from "./json-parse.ts";

for (const [text, message] of [
  ["", "unexpected end of JSON input"],
  ["hello", "invalid character 'h' looking for beginning of value"],
  ["{", "unexpected end of JSON input"],
  ["{a", "invalid character 'a' looking for beginning of object key string"],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{"a":1 "b"}', "invalid character '\"' after object key:value pair"],
  ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
  ["[1 2]", "invalid character '2' after array element"],
  ["[1,]", "invalid character ']' looking for beginning of value"],
  ["1 2", "invalid character '2' after top-level value"],
  ["trux", "invalid character 'x' in literal true (expecting 'e')"],
  ["-x", "invalid character 'x' in numeric literal"],
  ["1.x", "invalid character 'x' after decimal point in numeric literal"],
  ["1ex", "invalid character 'x' in exponent of numeric literal"],
  ['"\\x"', "invalid character 'x' in string escape code"],
  ['"\n"', "invalid character '\\n' in string literal"],
  ["[".repeat(1001), "invalid character '[' exceeded max depth"],
] as const) {
  test(`refuses ${JSON.stringify(text.slice(0, 12))}`, () => assert.throws(() => parseJsonText(text), { message }));
}

test("keeps integers that a double cannot hold", () => {
  assert.deepEqual(parseJsonText('{"a":9007199254740993,"b":-9223372036854775808,"c":[1]}'), {
    a: 9007199254740993n,
    b: -9223372036854775808n,
    c: [1],
  });
  assert.equal(parseJsonText("99999999999999999999"), 1e20);
  assert.equal(parseJsonText("0.10000000000000000001"), 0.1);
});

test("reports keys that occur twice, with their paths, and keeps the last", () => {
  const duplicates: string[] = [];
  const value = parseJsonText('{"a":1,"a":2,"b":[{"c":1},{"c":1,"c":3}]}', {
    onDuplicate: (_container, _key, path) => duplicates.push(path()),
  });
  assert.deepEqual(value, { a: 2, b: [{ c: 1 }, { c: 3 }] });
  assert.deepEqual(duplicates, ["a", "b[1].c"]);
});

test("treats __proto__ as an ordinary key", () => {
  const value = parseJsonText('{"__proto__":{"x":1234567890123456789}}') as object;
  assert.deepEqual(Object.keys(value), ["__proto__"]);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
});

test("brackets in strings do not count towards the depth", () => {
  const text = JSON.stringify({ a: '"\\['.repeat(20_000) });
  assert.deepEqual(parseJsonText(text), JSON.parse(text));
});

test("gives the same values as JSON.parse", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const numbers = /\d{16}/.test(text);
      if (!numbers) assert.deepEqual(parseJsonText(text, { onDuplicate: () => undefined }), JSON.parse(text));
    }),
    { numRuns: 500 },
  );
});

test("blanks, tabs and both characters of line ends separate values", () => {
  const parsed = parseJsonText('\r\n{\t"a" :\r\n[1\r,2\r\n] }\r', { onDuplicate: () => undefined });
  assert.deepEqual(parsed, { a: [1, 2] });
});

test("keeps the text of numbers that are not written as integers, on request", () => {
  const texts = (text: string): unknown =>
    (parseJsonText(text, { literals: true }) as unknown[]).map((v) => (typeof v === "symbol" ? v.description : v));
  assert.deepEqual(texts('[1, -2, 1.0, 1e3,-1.50E+2, 18446744073709551616, "1.0", 9007199254740993]'), [
    1,
    -2,
    "1.0",
    "1e3",
    "-1.50E+2",
    "18446744073709551616",
    "1.0",
    9007199254740993n,
  ]);
  assert.deepEqual(texts('["busybox:1.35", "a: 1.5 b"]'), ["busybox:1.35", "a: 1.5 b"]);
});

test("a large document nested too deeply is refused before memory is allocated for its levels", (t) => {
  const parse = t.mock.method(JSON, "parse");
  const text = "[".repeat(300_000);
  const options = { anyDepth: true, plainNumbers: true, maxDepth: maxTextDepth };
  assert.throws(() => parseJsonText(text, options), { message: "invalid character '[' exceeded max depth" });
  assert.equal(parse.mock.callCount(), 0);
});

test("gives the same result in steps as at once", () => {
  fc.assert(
    fc.property(fc.json({ depthSize: "large" }), (text) => {
      assert.deepEqual(atOnce(parseJsonInSteps(text)), parseJsonText(text));
    }),
  );
  const many = `[${"[{},1],".repeat(5000)}"end"]`;
  assert.deepEqual(atOnce(parseJsonInSteps(many)), JSON.parse(many));
  assert.throws(() => atOnce(parseJsonInSteps(many.slice(0, -1))), /^Error: unexpected end of JSON input$/);
});

test("a text of many values takes several steps", () => {
  const fields = Array.from({ length: 40_000 }, (_, i) => `"f${i}":${i}`).join();
  const steps = parseJsonInSteps(`{${fields}}`);
  let count = 0;
  while (!steps.next().done) count++;
  assert.ok(count >= 10, `${count} steps`);
});

test("a text that is nested too deeply is refused for that, also where it is malformed as well", () => {
  for (const text of [
    "[".repeat(1_001),
    `${"[".repeat(1_001)}${"]".repeat(1_001)} x`,
    "[".repeat(200_000),
    `["\\\\",${"[".repeat(1_001)}`,
  ])
    assert.throws(() => parseJsonText(text, { anyDepth: true }), { message: "invalid character '[' exceeded max depth" });
});

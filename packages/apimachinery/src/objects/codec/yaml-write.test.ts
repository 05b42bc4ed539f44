import assert from "node:assert/strict";
import { test } from "node:test";
import { parseYaml } from "./yaml.ts";
import { writeYaml } from "./yaml-write.ts";

const long = "a line of words that is longer than eighty characters must be folded once that many are written, not before";

/** Expected output was recorded from Go's yaml.v2 for `{"k": text}`, without the leading `k: `. */
for (const [text, want] of [
  ["word", "word"],
  ["two words", "two words"],
  ["", '""'],
  ...[
    "yes",
    "y",
    "Off",
    "TRUE",
    "null",
    "~",
    "1",
    "0",
    "-1",
    "+1",
    "017",
    "08",
    "0x1f",
    "0b1",
    "0o7",
    "1e3",
    "1_000",
    "1.",
    ".5",
    ".inf",
  ].map((word) => [word, `"${word}"`] as const),
  ...["1:30", "2021-12-07", "2021-12-07T18:16:20Z", "2021-1-2 3:4:5.6", "18446744073709551615", "<<"].map(
    (word) => [word, `"${word}"`] as const,
  ),
  ...["yEs", "0x", "1e", "1.2.3", "10m", "2021-13-07", "2021-02-30", "+", "_1", "=", "a:b", "a#b", "-x", ":x", "?x", "1_m"].map(
    (word) => [word, word] as const,
  ),
  ...[
    "- x",
    "-",
    "? x",
    "a: b",
    "a:",
    "a #b",
    "#a",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "%a",
    "@a",
    "`a",
    "[a]",
    "{a}",
    ",a",
    '"a"',
    "---",
    "...",
  ].map((word) => [word, `'${word}'`] as const),
  [" a", "' a'"],
  ["a ", "'a '"],
  ["'a'", "'''a'''"],
  ["it's", "it's"],
  ["é日本", "é日本"],
  ["😀", '"\\U0001F600"'],
  ["a\tb\r", '"a\\tb\\r"'],
  ['\0\x1b\x7f\x85\xa0\\"', '"\\0\\e\\x7F\\N\xa0\\\\\\""'],
  ["a\nb", "|-\n  a\n  b"],
  ["a\nb\n", "|\n  a\n  b"],
  ["a\n\n", "|+\n  a\n"],
  ["\n", "|2+\n"],
  [" a\nb", "|2-\n   a\n  b"],
  ["a\n\n  b", "|-\n  a\n\n    b"],
  ["a \nb", '"a \\nb"'],
  ["a\nb ", '"a\\nb "'],
  [long, "a line of words that is longer than eighty characters must be folded once that\n  many are written, not before"],
  [
    `${long}: x`,
    "'a line of words that is longer than eighty characters must be folded once that\n  many are written, not before: x'",
  ],
  [
    `${long}\t`,
    '"a line of words that is longer than eighty characters must be folded once that\n  many are written, not before\\t"',
  ],
  [`${"x".repeat(90)}  y z`, `${"x".repeat(90)}  y\n  z`],
  [`${"x".repeat(90)}\t  y`, `"${"x".repeat(90)}\\t\n  \\ y"`],
  [`${long}\n`, `|\n  ${long}`],
] as const) {
  test(`writes ${JSON.stringify(text).slice(0, 40)} with ${text.length} characters as Go does`, () => {
    assert.equal(writeYaml({ k: text }), `k: ${want}\n`);
    assert.deepEqual(parseYaml(writeYaml({ k: text, l: [text] })), { k: text, l: [text] });
  });
}

for (const { name, value, want } of [
  { name: "empty ones in brackets", value: { a: [], b: {} }, want: "a: []\nb: {}\n" },
  { name: "items no deeper than their key", value: { a: [1, { b: 2, c: [3] }] }, want: "a:\n- 1\n- b: 2\n  c:\n  - 3\n" },
  { name: "lists in lists in one line", value: [[1, [2]], [{ a: null }]], want: "- - 1\n  - - 2\n- - a: null\n" },
  {
    name: "a key of more than 128 bytes behind a question mark",
    value: { ["k".repeat(129)]: { a: 1 }, ["l".repeat(129)]: [1, 2] },
    want: `? ${"k".repeat(129)}\n: a: 1\n? ${"l".repeat(129)}\n: - 1\n  - 2\n`,
  },
  { name: "a key of two lines as a block", value: { "a\nb": "c" }, want: "? |-\n  a\n  b\n: c\n" },
  { name: "keys quoted like values", value: { "1": "a", true: "b", "": "c" }, want: '"": c\n"1": a\n"true": b\n' },
  {
    name: "numbers in keys by value, letters last",
    value: { a10: 1, a2: 1, a02: 1, A: 1, "a-b": 1, "a.b": 1, ab: 1, a: 1 },
    want: "A: 1\na: 1\na-b: 1\na.b: 1\na2: 1\na02: 1\na10: 1\nab: 1\n",
  },
  {
    name: "texts in quotes that read as a time or an integer of 64 bits, and others without",
    value: ["2001-01-01T23:59:59Z", "2001-01-01T24:00:00Z", "-0x8000000000000000", "-0x8000000000000001", "0xffffffffffffffff"],
    want: '- "2001-01-01T23:59:59Z"\n- 2001-01-01T24:00:00Z\n- "-0x8000000000000000"\n- -0x8000000000000001\n- "0xffffffffffffffff"\n',
  },
  {
    name: "numbers",
    value: [1, -1.5, 1e6, 1234567.5, 1e-7, 1e19, 1e20, 9223372036854775807n, true, null],
    want: "- 1\n- -1.5\n- 1000000\n- 1.2345675e+06\n- 1e-07\n- 10000000000000000000\n- 1e+20\n- 9223372036854775807\n- true\n- null\n",
  },
]) {
  test(`writes ${name}`, () => assert.equal(writeYaml(value), want));
}

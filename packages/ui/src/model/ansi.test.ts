import assert from "node:assert/strict";
import { test } from "node:test";
import { cutLine, mostLine, segmentsOf } from "./ansi.ts";

for (const { name, line, want } of [
  { name: "plain text", line: "a <b> c", want: [["a <b> c", ""]] },
  {
    name: "a colour and its end",
    line: "\u001b[31mred\u001b[0m plain",
    want: [
      ["red", "ansi-red"],
      [" plain", ""],
    ],
  },
  { name: "bright and bold", line: "\u001b[1;92mok", want: [["ok", "ansi-green ansi-bold"]] },
  {
    name: "codes that end only the colour or only the weight, and one without a number that ends both",
    line: "\u001b[1;34ma\u001b[39mb\u001b[35mc\u001b[22md\u001b[me",
    want: [
      ["a", "ansi-blue ansi-bold"],
      ["b", "ansi-bold"],
      ["c", "ansi-magenta ansi-bold"],
      ["d", "ansi-magenta"],
      ["e", ""],
    ],
  },
  {
    name: "a background, which is not shown, and whose arguments are no codes",
    line: "\u001b[41ma\u001b[48;2;31;32;33mb\u001b[97mc\u001b[90md",
    want: [
      ["a", ""],
      ["b", ""],
      ["c", "ansi-white"],
      ["d", "ansi-black"],
    ],
  },
  { name: "256 colours, whose arguments are no codes", line: "\u001b[38;5;31mx", want: [["x", ""]] },
  { name: "a title", line: "\u001b]0;evil\u0007text", want: [["text", ""]] },
  { name: "a title without end", line: "a\u001b]0;evil", want: [["a", ""]] },
  { name: "movements and erasing", line: "a\u001b[2J\u001b[1;1Hb\u001b(Bc", want: [["abc", ""]] },
  { name: "other control characters, tabs kept", line: "a\u0000\u0008\tb\r\u009b", want: [["a\tb", ""]] },
  { name: "marks that reverse text", line: "a\u202eb\u2066c", want: [["abc", ""]] },
  { name: "an escape at the end", line: "a\u001b", want: [["a", ""]] },
]) {
  test(`a line of a log: ${name}`, () => {
    assert.deepEqual(
      segmentsOf(line).map(({ text, look }) => [text, look]),
      want,
    );
  });
}

test("a line of very many colours becomes few segments, in linear time", () => {
  const segments = segmentsOf("\u001b[31mx\u001b[32my".repeat(20_000));
  assert.ok(segments.length <= 201);
  assert.equal(segments.map(({ text }) => text).join("").length, 40_000);
  segmentsOf("\u001b]".repeat(50_000));
  segmentsOf(`\u001b[${"1;".repeat(50_000)}`);
});

test("a long line is cut, and says how much is missing", () => {
  assert.equal(cutLine("x".repeat(mostLine)).length, mostLine);
  assert.match(cutLine("x".repeat(mostLine + 1_500)), /x … 1,500 more characters$/);
});

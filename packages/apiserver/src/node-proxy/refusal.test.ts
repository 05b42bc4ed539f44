import assert from "node:assert/strict";
import { test } from "node:test";
import { headEnd, longestHeadBytes } from "./refusal.ts";

const line = "HTTP/1.1 403 Forbidden";
for (const { name, answer, want } of [
  { name: "with lines that end in CR LF", answer: `${line}\r\n\r\nbody`, want: line.length },
  { name: "with lines that end in LF", answer: `${line}\n\nbody`, want: line.length },
  { name: "whose last line ends in CR LF, the empty one in LF", answer: `${line}\r\n\nbody`, want: line.length },
  { name: "whose last line ends in LF, the empty one in CR LF", answer: `${line}\n\r\nbody`, want: line.length },
  { name: "before a body with an empty line of LF", answer: `${line}\r\n\r\na\n\nb`, want: line.length },
  { name: "before a body with an empty line of CR LF", answer: `${line}\n\na\r\n\r\nb`, want: line.length },
  { name: "with a field", answer: `${line}\r\na: b\r\n\r\n`, want: line.length + "\r\na: b".length },
  { name: "without an empty line", answer: `${line}\r\na: b\r\n`, want: -1 },
  { name: "of nothing", answer: "", want: -1 },
  { name: "of the greatest length", answer: `${"x".repeat(longestHeadBytes)}\r\n\r\n`, want: longestHeadBytes },
  { name: "of the greatest length, with LF", answer: `${"x".repeat(longestHeadBytes)}\n\n`, want: longestHeadBytes },
  { name: "that is longer by one", answer: `${"x".repeat(longestHeadBytes + 1)}\r\n\r\n`, want: -1 },
  { name: "that is longer by one, with LF", answer: `${"x".repeat(longestHeadBytes + 1)}\n\n`, want: -1 },
]) {
  test(`a head ${name} ${want < 0 ? "has no end" : `ends at ${want}`}`, () => assert.equal(headEnd(Buffer.from(answer)), want));
}

test("a head may be 16 KiB long", () => assert.equal(longestHeadBytes, 16_384));

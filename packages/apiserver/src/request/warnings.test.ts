import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { Warnings } from "./warnings.ts";

function warned(...texts: string[]): string[] {
  let headers: string[] = [];
  const exchange = {
    headersSent: false,
    setHeader(_name: string, value: string | string[]) {
      headers = [value].flat();
    },
  } as unknown as Exchange;
  const warnings = new Warnings();
  for (const text of texts) warnings.add(exchange, text);
  return headers;
}
const lengthsOf = (headers: readonly string[]): number[] => headers.map((header) => header.length - '299 - ""'.length);

for (const { name, texts, want } of [
  { name: "keeps the order, sends each once", texts: ["b", "a", "b"], want: ['299 - "b"', '299 - "a"'] },
  { name: "quotes", texts: ['say "\\"'], want: ['299 - "say \\"\\\\\\""'] },
  { name: "leaves out what no header may hold", texts: ["a\nb", "", "c"], want: ['299 - "c"'] },
  { name: "writes UTF-8", texts: ["é"], want: ['299 - "\u00c3\u00a9"'] },
]) {
  test(`a warning: ${name}`, () => assert.deepEqual(warned(...texts), want));
}

test("warnings that fit together stay whole", () => {
  assert.deepEqual(lengthsOf(warned("a".repeat(2000), "b".repeat(2000))), [2000, 2000]);
});

test("warnings that are too much are all cut, and end when that is too much too", () => {
  assert.deepEqual(lengthsOf(warned("a".repeat(2000), "b".repeat(2000), "c".repeat(2000))), [256, 256, 256]);
  const many = Array.from({ length: 40 }, (_, i) => String.fromCharCode(97 + (i % 26)).repeat(300 + i));
  assert.equal(warned(...many).length, 16);
});

test("warnings of exactly 4096 characters stay whole, counted as characters", () => {
  assert.deepEqual(lengthsOf(warned("a".repeat(4000), "b".repeat(96))), [4000, 96]);
  assert.deepEqual(lengthsOf(warned("a".repeat(4000), "b".repeat(97))), [256, 97]);
  const wide = "\u{1f600}".repeat(2048);
  assert.equal(warned(wide, wide.slice(2)).length, 2);
  assert.equal(warned(wide, wide.slice(2))[0]?.length, '299 - ""'.length + 4 * 2048, "in UTF-8");
});

test("a warning after the headers are sent is dropped", () => {
  const set: unknown[] = [];
  const exchange = { headersSent: false, setHeader: (_: string, value: unknown) => set.push(value) };
  const warnings = new Warnings();
  const add = (text: string) => warnings.add(exchange as unknown as Exchange, text); // cast: all that is used
  add("a");
  exchange.headersSent = true;
  add("b");
  assert.deepEqual(set, ['299 - "a"']);
});

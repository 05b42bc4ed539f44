import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderBlock, HeaderMemory } from "./input.ts";

const mebibyte = Buffer.alloc(1024 * 1024);
const boundless = 1024 * 1024 * 1024;

test("a complete block is returned once", () => {
  const block = new HeaderBlock(3, 4, 10, new HeaderMemory(), () => {});
  for (const part of ["ab", "", "cde"]) block.add(Buffer.from(part));
  assert.deepEqual([block.stream, block.flags, String(block.take()), block.take().length], [3, 4, "abcde", 0]);
});

test("a block is limited in bytes and in empty frames", () => {
  const block = new HeaderBlock(1, 0, 10, new HeaderMemory(), () => {});
  block.add(Buffer.alloc(10));
  assert.throws(() => block.add(Buffer.alloc(1)), /header block exceeds the limits/);
  block.drop();
  const empty = new HeaderBlock(1, 0, 10, new HeaderMemory(), () => {});
  for (let i = 0; i < 500; i++) empty.add(Buffer.alloc(0));
  assert.throws(() => empty.add(Buffer.alloc(0)), /header block exceeds the limits/);
  empty.drop();
});

test("beyond 64 MiB of incomplete blocks the oldest are dropped; complete and dropped ones do not count", () => {
  const reported: string[] = [];
  const memory = new HeaderMemory();
  const [taken, dropped, first, second, third] = ["taken", "dropped", "first", "second", "third"].map(
    (name) => new HeaderBlock(1, 0, boundless, memory, () => reported.push(name)),
  ) as [HeaderBlock, HeaderBlock, HeaderBlock, HeaderBlock, HeaderBlock];
  for (let i = 0; i < 40; i++) {
    taken.add(mebibyte);
    if (i % 2 === 0) dropped.add(mebibyte);
  }
  taken.take();
  dropped.drop();
  dropped.drop();
  first.add(mebibyte);
  for (let i = 0; i < 33; i++) second.add(mebibyte);
  for (let i = 0; i < 30; i++) third.add(mebibyte);
  assert.deepEqual(reported, []);
  third.add(mebibyte);
  assert.deepEqual(reported, ["first"]);
  third.add(mebibyte);
  assert.deepEqual(reported, ["first", "second"]);
  for (let i = 0; i < 32; i++) third.add(mebibyte);
  assert.deepEqual(reported, ["first", "second"]);
  third.add(mebibyte);
  assert.deepEqual(reported, ["first", "second", "third"]);
});

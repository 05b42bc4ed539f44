import assert from "node:assert/strict";
import { test } from "node:test";
import { Fnv32a, fnv32, fnv32a } from "./fnv.ts";

const hashes = (hash: (bytes: Uint8Array) => number): number[] => ["", "a", "foobar"].map((text) => hash(Buffer.from(text)));

test("is FNV-1a with 32 bits", () => assert.deepEqual(hashes(fnv32a), [0x811c9dc5, 0xe40c292c, 0xbf9cf968]));

test("fnv1 is FNV-1, as upstream uses it", () => assert.deepEqual(hashes(fnv32), [0x811c9dc5, 0x050c5d7e, 0x31f0b262]));

test("pieces of text and bytes have the hash of the whole in UTF-8", () => {
  const hash = new Fnv32a();
  for (const piece of ["foo", "", "bär 😀", "é"]) hash.text(piece);
  hash.bytes(Buffer.from("bar"));
  assert.equal(hash.value, fnv32a(Buffer.from("foobär 😀ébar")));
});

test("printed bytes have the hash of their decimal numbers", () => {
  const hashOf = (bytes: number[]): number => {
    const hash = new Fnv32a();
    hash.printedBytes(Uint8Array.from(bytes));
    return hash.value;
  };
  for (const bytes of [[], [0], [9, 10, 99, 100, 255]]) {
    assert.equal(hashOf(bytes), fnv32a(Buffer.from(`[${bytes.join(" ")}]`)));
  }
});

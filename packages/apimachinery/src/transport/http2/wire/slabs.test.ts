import assert from "node:assert/strict";
import { test } from "node:test";
import { giveSlabBack, largestSlabBytes, slabMemory, takeSlab } from "./buffers.ts";

for (const bytes of [0, 1, 8 * 1024, 8 * 1024 + 1, 70_000, largestSlabBytes, largestSlabBytes + 1, 1_000_000]) {
  test(`a slab for ${bytes} bytes has at most 8 KiB more`, () => {
    const slab = takeSlab(bytes);
    assert.ok(slab.length >= bytes && slab.length <= Math.max(bytes + 8 * 1024, 8 * 1024));
    giveSlabBack(slab);
  });
}

test("a returned slab is reused by one user at a time", () => {
  const first = takeSlab(20_000);
  giveSlabBack(first);
  const [again, other] = [takeSlab(20_000), takeSlab(20_000)];
  assert.equal(again, first);
  assert.notEqual(other, first);
});

test("a returned slab above the maximum size is not kept", () => {
  const large = takeSlab(largestSlabBytes + 1);
  giveSlabBack(large);
  assert.notEqual(takeSlab(largestSlabBytes + 1), large);
});

test("the memory of kept slabs is limited, small ones are always kept", () => {
  const many = Array.from({ length: 100 }, () => takeSlab(largestSlabBytes));
  const small = takeSlab(100);
  for (const slab of many) giveSlabBack(slab);
  giveSlabBack(small);
  assert.equal(takeSlab(100), small);
  const known = new Set(many);
  const kept = Array.from({ length: 100 }, () => takeSlab(largestSlabBytes)).filter((slab) => known.has(slab));
  assert.ok(kept.length > 0 && kept.length <= 64, `${kept.length} of 256 KiB`);
});

test("the budget counts kept slabs, not those in use", () => {
  const slab = takeSlab(30_000);
  const before = slabMemory.bytes;
  giveSlabBack(slab);
  assert.equal(slabMemory.bytes, before + slab.length);
  takeSlab(30_000);
  assert.equal(slabMemory.bytes, before);
});

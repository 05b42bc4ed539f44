import assert from "node:assert/strict";
import { test } from "node:test";
import { GatheredBytes } from "./buffers.ts";

const octets = (size: number, from = 0): Buffer => Buffer.from(Array.from({ length: size }, (_, i) => (from + i) % 251));

for (const sizes of [[], [1], [1024], [5000], [1, 1024, 1], [1023, 1023, 1023, 1023, 1023], [4096, 3, 0, 4096, 1000, 3096, 1]]) {
  test(`pieces of ${JSON.stringify(sizes)} octets come back in their order`, () => {
    const bytes = new GatheredBytes();
    const pieces = sizes.map((size, i) => octets(size, 7 * i));
    for (const piece of pieces) bytes.push(piece);
    const all = Buffer.concat(pieces);
    assert.equal(bytes.size, all.length);
    assert.ok(bytes.take().equals(all));
    assert.deepEqual([bytes.size, bytes.take().length], [0, 0]);
    bytes.push(octets(3));
    assert.ok(bytes.take().equals(octets(3)), "what comes later does not mix with it");
  });
}

for (const size of [10, 2000]) {
  test(`a single piece of ${size} octets is not copied`, () => {
    const bytes = new GatheredBytes();
    const piece = octets(size);
    bytes.push(piece);
    assert.equal(bytes.take(), piece);
  });
}

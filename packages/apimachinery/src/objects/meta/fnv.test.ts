import assert from "node:assert/strict";
import { test } from "node:test";
import { fnv32, fnv32a } from "./fnv.ts";

const hashes = (hash: (bytes: Uint8Array) => number): number[] => ["", "a", "foobar"].map((text) => hash(Buffer.from(text)));

test("is FNV-1a with 32 bits", () => assert.deepEqual(hashes(fnv32a), [0x811c9dc5, 0xe40c292c, 0xbf9cf968]));

test("fnv1 is FNV-1, as upstream uses it", () => assert.deepEqual(hashes(fnv32), [0x811c9dc5, 0x050c5d7e, 0x31f0b262]));

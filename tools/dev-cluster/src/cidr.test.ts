import assert from "node:assert/strict";
import { test } from "node:test";
import { addressAt, type Cidr, formatCidr, overlaps, parseCidr } from "./cidr.ts";

test("a network is four bytes and a prefix, and begins at a multiple of its size", () => {
  for (const text of ["0.0.0.0/0", "10.96.0.0/12", "255.255.255.255/32", "10.0.0.4/30"]) {
    const cidr = parseCidr(text);
    assert.ok(cidr, text);
    assert.equal(formatCidr(cidr), text);
  }
  for (const text of ["10.96.0.1/12", "10.0.0.2/30", "256.0.0.0/8", "10.0.0.0/33", "10.0.0.0", "10.0.0/8", "fd00::/8", ""])
    assert.equal(parseCidr(text), undefined, text);
});

test("addresses of a network follow each other over all four bytes", () => {
  const cidr = parseCidr("10.1.0.0/16");
  assert.deepEqual(
    [0, 10, 256, 65_535].map((offset) => addressAt(cidr as Cidr, offset)),
    ["10.1.0.0", "10.1.0.10", "10.1.1.0", "10.1.255.255"],
  );
});

test("networks side by side do not overlap, those within each other do, whichever is named first", () => {
  for (const [one, other, want] of [
    ["10.0.0.0/25", "10.0.0.128/25", false],
    ["10.0.0.0/24", "10.0.1.0/24", false],
    ["10.0.0.0/16", "10.0.255.255/32", true],
    ["10.0.0.0/24", "10.0.0.0/24", true],
    ["128.0.0.0/1", "192.168.0.0/16", true],
    ["0.0.0.0/1", "128.0.0.0/1", false],
  ] as const) {
    const [a, b] = [parseCidr(one), parseCidr(other)] as [Cidr, Cidr]; // cast: both are networks
    assert.deepEqual([overlaps(a, b), overlaps(b, a)], [want, want], `${one} ${other}`);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { contains, DisjointNetworks, hostNetwork, type Network, overlaps, parseNetwork } from "./networks.ts";

const network = (cidr: string): Network => parseNetwork(cidr) as Network; // cast: each is one

for (const [one, other, overlap, contain] of [
  ["10.0.0.0/24", "10.0.0.0/24", true, true],
  ["10.0.0.0/24", "10.0.0.128/25", true, true],
  ["10.0.0.0/24", "10.0.0.255/32", true, true],
  ["10.0.0.0/24", "10.0.0.0/32", true, true],
  ["10.0.0.128/25", "10.0.0.0/24", true, false],
  ["10.0.0.0/24", "10.0.1.0/24", false, false],
  ["10.0.1.0/24", "10.0.0.0/24", false, false],
  ["10.0.0.1/32", "10.0.0.1/32", true, true],
  ["::/0", "10.0.0.0/8", false, false],
] as const) {
  test(`${one} ${overlap ? "overlaps" : "does not overlap"} and ${contain ? "contains" : "does not contain"} ${other}`, () => {
    const [a, b] = [network(one), network(other)];
    assert.deepEqual([overlaps(a, b), overlaps(b, a), contains(a, b)], [overlap, overlap, contain]);
  });
}

test("networks are written as the kernel does, also those of one address", () => {
  assert.deepEqual([network("10.0.0.9/24").text, network("FD00:0::9/64").text], ["10.0.0.0/24", "fd00::/64"]);
  assert.deepEqual([hostNetwork("10.0.0.9")?.text, hostNetwork("fd00::9")?.text], ["10.0.0.9/32", "fd00::9/128"]);
  assert.deepEqual([hostNetwork("node"), parseNetwork("10.0.0.0/33")], [undefined, undefined]);
});

test("of networks in any order each that overlaps an earlier one is found, and not added", () => {
  const all = new DisjointNetworks<string>();
  const add = (cidr: string): string | undefined => all.add(network(cidr), cidr)?.of;
  for (const cidr of ["10.0.4.0/24", "10.0.0.0/24", "10.0.2.0/24", "10.0.6.0/24", "10.0.1.0/24", "fd00::/64"])
    assert.equal(add(cidr), undefined, cidr);
  for (const [cidr, found] of [
    ["10.0.0.128/25", "10.0.0.0/24"],
    ["10.0.1.255/32", "10.0.1.0/24"],
    ["10.0.2.7/32", "10.0.2.0/24"],
    ["10.0.4.0/23", "10.0.4.0/24"],
    ["10.0.6.1/32", "10.0.6.0/24"],
    ["fd00::1/128", "fd00::/64"],
  ] as const)
    assert.equal(add(cidr), found);
  assert.equal(add("10.0.5.0/24"), undefined, "what overlapped was not added");
});

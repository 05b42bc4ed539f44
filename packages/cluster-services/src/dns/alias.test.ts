import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answer, encode } from "dns-packet";
import { recordsIn } from "./alias.ts";
import { encodeName } from "./encode-record.ts";
import { types } from "./protocol.ts";

const relayed = (answers: Answer[], ageSeconds?: number) => ({
  ...{ message: encode({ type: "response", answers }), records: [], rcode: 0 },
  ...(ageSeconds !== undefined && { ageSeconds }),
});

test("addresses and aliases continue an answer, other records do not", () => {
  const records = recordsIn(
    relayed([
      { name: "a.example", type: "CNAME", ttl: 60, data: "b.example" },
      { name: "b.example", type: "A", ttl: 60, data: "192.0.2.1" },
      { name: "b.example", type: "AAAA", ttl: 60, data: "2001:db8::1" },
      { name: "b.example", type: "TXT", ttl: 60, data: "x" },
    ]),
  );
  assert.deepEqual(
    records.map(({ type, owner, ttl }) => ({ type, owner, ttl })),
    [
      { type: types.CNAME, owner: encodeName("a.example"), ttl: 60 },
      { type: types.A, owner: encodeName("b.example"), ttl: 60 },
      { type: types.AAAA, owner: encodeName("b.example"), ttl: 60 },
    ],
  );
  assert.deepEqual(Buffer.from(records[1]!.data), Buffer.from([0, 4, 192, 0, 2, 1]));
});

for (const { name, ttl, ageSeconds, want } of [
  { name: "fresh", ttl: 60, ageSeconds: undefined, want: 60 },
  { name: "10 s old", ttl: 60, ageSeconds: 10, want: 50 },
  { name: "older than its lifetime", ttl: 5, ageSeconds: 10, want: 0 },
]) {
  test(`the lifetime of a record that is ${name}`, () => {
    const [record] = recordsIn(relayed([{ name: "b.example", type: "A", ttl, data: "192.0.2.1" }], ageSeconds));
    assert.equal(record?.ttl, want);
  });
}

test("names that cannot be written again are left out: an empty label, in the owner or in the target of an alias", () => {
  /** The label `a.` is read as a label and an empty one. */
  const broken = (name: string): string => name.replace("xx", "a.");
  const message = encode({
    type: "response",
    answers: [
      { name: "xx.example", type: "A", ttl: 60, data: "192.0.2.1" },
      { name: "b.example", type: "CNAME", ttl: 60, data: "xx.other" },
      { name: "c.example", type: "A", ttl: 60, data: "192.0.2.2" },
    ],
  });
  const changed = Buffer.from(broken(broken(message.toString("latin1"))), "latin1");
  assert.deepEqual(
    recordsIn({ message: changed, records: [], rcode: 0 }).map(({ type, owner }) => ({ type, owner })),
    [{ type: types.A, owner: encodeName("c.example") }],
  );
});

test("a malformed answer is an error", () => {
  assert.throws(() => recordsIn({ message: Buffer.from([0, 1]), records: [], rcode: 0 }));
});

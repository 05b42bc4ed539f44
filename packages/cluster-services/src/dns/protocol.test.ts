import assert from "node:assert/strict";
import { test } from "node:test";
import { encode } from "dns-packet";
import { flags, rcodeName, rcodes, typeName, types } from "./protocol.ts";

for (const [name, number] of Object.entries(types)) {
  test(`the type ${name} has the number ${number} on the wire`, () => {
    // Cast: the library's type lists only what it can encode the data of.
    const message = encode({ type: "query", questions: [{ name: "x", type: name as "A" }] });
    assert.equal(message.readUInt16BE(message.length - 4), number);
    assert.equal(typeName(number), name);
  });
}

test("the flags of a header are those of the protocol", () => {
  // Source: RFC 1035, section 4.1.1
  assert.deepEqual(flags, {
    response: 1 << 15,
    authoritative: 1 << 10,
    truncated: 1 << 9,
    recursionDesired: 1 << 8,
    recursion: 1 << 7,
  });
});

test("metrics name the known types and codes, and no others", () => {
  assert.deepEqual([typeName(65), typeName(0)], ["other", "other"]);
  // Source: RFC 1035, section 4.1.1; RFC 6891, section 9
  const names = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
  assert.deepEqual(
    Array.from({ length: 18 }, (_, code) => rcodeName(code)),
    Array.from({ length: 18 }, (_, code) => names[code] ?? (code === 16 ? "BADVERS" : "other")),
  );
  assert.deepEqual(Object.values(rcodes), [0, 1, 2, 3, 4, 5, 16]);
});

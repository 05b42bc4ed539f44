import assert from "node:assert/strict";
import { test } from "node:test";
import { type DbusMessage, decodeMessage, encodeMessage, splitSignature } from "./message.ts";

test("a message reads as it was written, in pieces of any size", () => {
  const message: DbusMessage = {
    kind: "call",
    serial: 7,
    path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
    member: "Inhibit",
    destination: "org.freedesktop.login1",
    signature: "ssibvtas(yu)",
    body: ["shut", "ütf", -1, true, { type: "s", value: "inner" }, 5_000_000n, ["a", "bc"], [3, 4_000_000_000]],
  };
  const bytes = encodeMessage(message);
  for (let length = 0; length < bytes.length; length++) assert.equal(decodeMessage(bytes.subarray(0, length)), undefined);
  assert.deepEqual(decodeMessage(Buffer.concat([bytes, Buffer.from("next")])), { message, size: bytes.length });
});

test("a message of the other byte order is read, too", () => {
  const bytes = Buffer.from("4204010100000004000000010000000c", "hex");
  const fields = Buffer.from("08016700016200000501750000000009".slice(0, 24), "hex");
  const message = decodeMessage(Buffer.concat([bytes, fields, Buffer.alloc(4), Buffer.from("00000001", "hex")]));
  assert.equal(message?.message.kind, "signal");
  assert.deepEqual(message?.message.body, [true]);
});

for (const { name, bytes } of [
  { name: "of another protocol", bytes: Buffer.from("HTTP/1.1 200 OK\r\n\r\n") },
  { name: "that is too long", bytes: Buffer.from("6c01000100000040010000000000000000", "hex") },
]) {
  test(`what comes ${name} is no message`, () => assert.throws(() => decodeMessage(bytes)));
}

test("a signature is a list of types", () => {
  assert.deepEqual(splitSignature("sa{sv}a(ii)aai"), ["s", "a{sv}", "a(ii)", "aai"]);
});

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

test("a big-endian message is decoded", () => {
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
  test(`decoding bytes ${name} throws`, () => assert.throws(() => decodeMessage(bytes)));
}

test("a message may have 1 MiB, and no more", () => {
  const start = Buffer.from("6c0100010000000001000000", "hex");
  const ofBody = (bytes: number): Buffer => {
    start.writeUInt32LE(bytes, 4);
    return Buffer.concat([start, Buffer.alloc(4)]);
  };
  assert.equal(decodeMessage(ofBody(2 ** 20 - 16)), undefined, "the rest is awaited");
  assert.throws(() => decodeMessage(ofBody(2 ** 20 - 15)), /the protocol allows 1048576/);
});

test("a signature is a list of types", () => {
  assert.deepEqual(splitSignature("sa{sv}a(ii)aai"), ["s", "a{sv}", "a(ii)", "aai"]);
});

/** The values of a message with this body, whose only header field is the signature. */
function bodyOf(signature: string, hex: string, order: string): unknown {
  const body = Buffer.from(hex, "hex");
  const fieldBytes = signature.length + 6;
  const head = Buffer.alloc(16 + Math.ceil(fieldBytes / 8) * 8);
  const u32 = (value: number, at: number) => (order === "l" ? head.writeUInt32LE(value, at) : head.writeUInt32BE(value, at));
  head.write(`${order}\u0004\u0000\u0001`, 0, "latin1");
  u32(body.length, 4);
  u32(1, 8);
  u32(fieldBytes, 12);
  head.write(`\u0008\u0001g\u0000${String.fromCharCode(signature.length)}${signature}\u0000`, 16, "latin1");
  return decodeMessage(Buffer.concat([head, body]))?.message.body;
}

for (const { order, type, hex, want } of [
  { order: "l", type: "n", hex: "feff", want: -2 },
  { order: "B", type: "n", hex: "fffe", want: -2 },
  { order: "l", type: "q", hex: "feff", want: 65_534 },
  { order: "B", type: "q", hex: "fffe", want: 65_534 },
  { order: "l", type: "i", hex: "feffffff", want: -2 },
  { order: "B", type: "u", hex: "fffffffe", want: 4_294_967_294 },
  { order: "l", type: "x", hex: "feffffffffffffff", want: -2n },
  { order: "B", type: "x", hex: "fffffffffffffffe", want: -2n },
  { order: "l", type: "t", hex: "feffffffffffffff", want: 2n ** 64n - 2n },
  { order: "B", type: "t", hex: "fffffffffffffffe", want: 2n ** 64n - 2n },
  { order: "l", type: "d", hex: "000000000000f8bf", want: -1.5 },
  { order: "B", type: "d", hex: "bff8000000000000", want: -1.5 },
]) {
  test(`reads ${want} of type ${type} in byte order ${order}`, () => assert.deepEqual(bodyOf(type, hex, order), [want]));
}

for (const { type, padding, hex, want } of [
  { type: "n", padding: 1, hex: "feff", want: -2 },
  { type: "q", padding: 1, hex: "feff", want: 65_534 },
  { type: "u", padding: 3, hex: "feffffff", want: 4_294_967_294 },
  { type: "b", padding: 3, hex: "01000000", want: true },
  { type: "x", padding: 7, hex: "feffffffffffffff", want: -2n },
  { type: "t", padding: 7, hex: "feffffffffffffff", want: 2n ** 64n - 2n },
  { type: "d", padding: 7, hex: "000000000000f8bf", want: -1.5 },
  { type: "(y)", padding: 7, hex: "05", want: [5] },
  { type: "g", padding: 0, hex: "017300", want: "s" },
  { type: "v", padding: 0, hex: "01790005", want: { type: "y", value: 5 } },
]) {
  test(`a value of type ${type} behind a byte begins after ${padding} more`, () =>
    assert.deepEqual(bodyOf(`y${type}`, `09${"00".repeat(padding)}${hex}`, "l"), [9, want]));
}

test("an array that is longer than its message is refused, also one of elements without content", () => {
  const read = (type: string) => {
    const head = Buffer.from("6c04000104000000010000000b000000", "hex");
    const field = Buffer.concat([Buffer.from("08016700", "hex"), Buffer.from([type.length]), Buffer.from(`${type}\0`)]);
    head.writeUInt32LE(field.length, 12);
    const padding = Buffer.alloc((8 - (field.length % 8)) % 8);
    return () => decodeMessage(Buffer.concat([head, field, padding, Buffer.from("10000000", "hex")]));
  };
  assert.throws(read("as"), { message: "D-Bus message ends too early" });
  assert.throws(read("a()"), { message: "D-Bus type () has no content" });
});

for (const [signature, value, message] of [
  ["u", "text", "a D-Bus value is not a number"],
  ["i", true, "a D-Bus value is not a number"],
  ["s", 1, "a D-Bus value is not a string"],
  ["as", "text", "a D-Bus value is not a list"],
  ["as", { type: "s", value: "text" }, "a D-Bus value is not a list"],
  ["(u)", 5, "a D-Bus value is not a list"],
  ["v", "text", "a D-Bus value is not a variant"],
  ["v", ["text"], "a D-Bus value is not a variant"],
  ["d", 1.5, "D-Bus type d cannot be encoded"],
] as const) {
  test(`${JSON.stringify(value)} cannot be written as ${signature}`, () => {
    assert.throws(() => encodeMessage({ kind: "call", serial: 1, signature, body: [value] }), { message });
  });
}

test("a whole number may be written as one of 64 bits", () => {
  const bytes = encodeMessage({ kind: "return", serial: 1, signature: "t", body: [30_000] });
  assert.deepEqual(decodeMessage(bytes)?.message.body, [30_000n]);
});

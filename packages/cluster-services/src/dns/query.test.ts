import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { decode, encode } from "dns-packet";
import { addressRecord } from "./encode-record.ts";
import { walkResponse } from "./message-walk.ts";
import { rcodes } from "./protocol.ts";
import { parseQuery, type Query } from "./query.ts";
import { encodeReply, plainReply, udpLimit } from "./reply.ts";

const query = (name: string): Buffer => encode({ id: 9, type: "query", flags: 0x100, questions: [{ name, type: "AAAA" }] });

test("answers are rotated, and what is left of a truncated reply has no other sections", () => {
  const asked = parseQuery(query("a.example")) as Query;
  const answers = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(addressRecord);
  const of = { rcode: 0, authoritative: true };
  const rotated = decode(encodeReply(asked, { ...of, answers, rotation: 1 }, 512));
  assert.deepEqual(
    rotated.answers?.map((one) => (one as { data: unknown }).data),
    ["192.0.2.2", "192.0.2.3", "192.0.2.1"],
  );
  const [long, short] = [addressRecord("2001:db8::1"), addressRecord("192.0.2.1")];
  const reply = { ...of, answers: [long], authorities: [short], additionals: [short] };
  const bytesOf = ({ data }: { readonly data: Buffer }): number => 2 + 8 + data.length;
  const whole = encodeReply(asked, reply, 512).length;
  const cut = decode(encodeReply(asked, reply, whole - 2 * bytesOf(short) - 1));
  assert.deepEqual([cut.flag_tc, cut.answers?.length, cut.authorities?.length, cut.additionals?.length], [true, 0, 0, 0]);
});

test("reads a question in any spelling, and EDNS", () => {
  const message = encode({
    id: 9,
    type: "query",
    flags: 0x110,
    questions: [{ name: "Kubernetes.DEFAULT.svc", type: "AAAA" }],
    additionals: [{ type: "OPT", name: ".", udpPayloadSize: 4096, flags: 0x8000 } as never],
  });
  const parsed = parseQuery(message);
  assert.partialDeepStrictEqual(parsed, {
    id: 9,
    name: "kubernetes.default.svc",
    type: 28,
    class: 1,
    recursionDesired: true,
    checkingDisabled: true,
    edns: { payloadBytes: 4096, dnssecOk: true },
  });
});

test("escapes a dot within a label", () => {
  const message = query("kubernetes.default");
  message[12 + 11] = 0;
  message.set([18, ...Buffer.from("kubernetes.default"), 0, 0, 28, 0, 1], 12);
  assert.partialDeepStrictEqual(parseQuery(message), { name: "kubernetes\\.default" });
});

const patched = (change: (message: Buffer) => Buffer | undefined): Buffer => {
  const message = query("a.b");
  return change(message) ?? message;
};
for (const { name, message, rcode } of [
  { name: "nothing", message: Buffer.alloc(0), rcode: undefined },
  { name: "a part of a header", message: patched((m) => m.subarray(0, 11)), rcode: undefined },
  { name: "a response", message: patched((m) => void m.writeUInt16BE(0x8180, 2)), rcode: undefined },
  { name: "an update", message: patched((m) => void m.writeUInt16BE(5 << 11, 2)), rcode: rcodes.notImp },
  { name: "an operation above 7", message: patched((m) => void m.writeUInt16BE(8 << 11, 2)), rcode: rcodes.notImp },
  { name: "no question", message: patched((m) => void m.writeUInt16BE(0, 4)), rcode: rcodes.formErr },
  { name: "65535 questions", message: patched((m) => void m.writeUInt16BE(65_535, 4)), rcode: rcodes.formErr },
  { name: "an answer", message: patched((m) => void m.writeUInt16BE(1, 6)), rcode: rcodes.formErr },
  { name: "65535 additional records", message: patched((m) => void m.writeUInt16BE(65_535, 10)), rcode: rcodes.formErr },
  { name: "an additional record that is missing", message: patched((m) => void m.writeUInt16BE(1, 10)), rcode: rcodes.formErr },
  { name: "a name that points to itself", message: patched((m) => void m.writeUInt16BE(0xc00c, 12)), rcode: rcodes.formErr },
  { name: "a label of a reserved kind", message: patched((m) => void m.writeUInt8(0x41, 12)), rcode: rcodes.formErr },
  { name: "a label beyond the end", message: patched((m) => void m.writeUInt8(60, 12)), rcode: rcodes.formErr },
  { name: "a name without type", message: patched((m) => m.subarray(0, -4)), rcode: rcodes.formErr },
  { name: "a name of 256 bytes", message: query(Array(64).fill("abc").join(".")), rcode: rcodes.formErr },
]) {
  test(`refuses ${name}`, () => {
    const parsed = parseQuery(message);
    assert.ok("rcode" in parsed);
    assert.equal(parsed.rcode, rcode);
  });
}

test("says that another version of EDNS is not supported", () => {
  const opt = { type: "OPT", name: ".", udpPayloadSize: 1232, ednsVersion: 1 };
  const parsed = parseQuery(encode({ type: "query", questions: [{ name: "a", type: "A" }], additionals: [opt as never] }));
  assert.partialDeepStrictEqual(parsed, { rcode: rcodes.badVers });
});

test("reads any bytes without failing", () => {
  const valid = query("kubernetes.default.svc.cluster.local");
  const changed = fc
    .array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { maxLength: 8 })
    .map((changes) => changes.reduce((bytes, [at, byte]) => bytes.fill(byte, at, at + 1), Buffer.from(valid)));
  const any = fc.oneof(changed, fc.uint8Array({ maxLength: 600 }).map(Buffer.from));
  fc.assert(
    fc.property(any, (bytes) => {
      parseQuery(bytes);
      walkResponse(bytes);
    }),
    { numRuns: 5_000 },
  );
});

const opt = { type: "OPT", name: ".", udpPayloadSize: 4096 } as never;
const other = { type: "A", name: "a", ttl: 0, data: "192.0.2.1" } as never;
const queryWith = (name: string, additionals: never[]): Buffer =>
  encode({ id: 9, type: "query", flags: 0x100, questions: [{ name, type: "A" }], additionals });
const labels = (last: number): string => [63, 63, 63, last].map((length) => "a".repeat(length)).join(".");
for (const { name, message, isRead } of [
  { name: "EDNS behind another record", message: queryWith("a.b", [other, opt]), isRead: true },
  { name: "EDNS twice", message: queryWith("a.b", [opt, opt]), isRead: false },
  { name: "three additional records", message: queryWith("a.b", [other, other, opt]), isRead: false },
  { name: "the longest name", message: queryWith(labels(61), [opt]), isRead: true },
  { name: "a name that is one byte longer", message: queryWith(labels(62), [opt]), isRead: false },
])
  test(`${isRead ? "reads" : "refuses"} ${name}`, () => {
    const parsed = parseQuery(message);
    if (isRead) assert.partialDeepStrictEqual(parsed, { edns: { payloadBytes: 4096 } });
    else assert.partialDeepStrictEqual(parsed, { rcode: rcodes.formErr });
  });

test("a reply stays as it is while others are encoded", () => {
  const first = encodeReply(parseQuery(query("a.example")) as Query, plainReply(rcodes.servFail), 512);
  const before = Buffer.from(first);
  encodeReply(parseQuery(query("b.example")) as Query, plainReply(rcodes.noError), 512);
  assert.deepEqual(first, before);
});

test("a UDP response is as long as the client takes, but never shorter than 512 bytes nor longer than 1232", () => {
  const limitOf = (udpPayloadSize: number): number =>
    udpLimit(parseQuery(queryWith("a.b", [{ type: "OPT", name: ".", udpPayloadSize } as never])) as Query);
  assert.deepEqual([1, 511, 512, 513, 1232, 1233, 65_535].map(limitOf), [512, 512, 512, 513, 1232, 1232, 1232]);
  assert.equal(udpLimit(parseQuery(query("a.b")) as Query), 512);
});

test("a reply repeats RD, CD and DO of its query, and nothing that was not set", () => {
  const replyTo = (flags: number, ednsFlags?: number) => {
    const additionals =
      ednsFlags === undefined ? [] : [{ type: "OPT", name: ".", udpPayloadSize: 512, flags: ednsFlags } as never];
    const asked = encode({ id: 9, type: "query", flags, questions: [{ name: "a.b", type: "A" }], additionals });
    const reply = decode(encodeReply(parseQuery(asked) as Query, plainReply(rcodes.noError), 512));
    const [opt] = (reply.additionals ?? []) as { flag_do?: boolean }[];
    return [reply.flag_rd, reply.flag_cd, opt?.flag_do];
  };
  assert.deepEqual(
    [replyTo(0), replyTo(0x110), replyTo(0x100, 0), replyTo(0x10, 0x8000)],
    [
      [false, false, undefined],
      [true, true, undefined],
      [true, false, false],
      [false, true, true],
    ],
  );
});

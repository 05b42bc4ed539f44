import assert from "node:assert/strict";
import { test } from "node:test";
import { lifetimeOf, type RecordPlace, walkResponse } from "./message-walk.ts";
import { types } from "./protocol.ts";

const u16 = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(2 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt16BE(value, 2 * i);
  return bytes;
};
const name = (...labels: string[]): Buffer =>
  Buffer.concat([...labels.map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])), Buffer.of(0)]);
const header = (questions: number, answers: number, authorities: number, additionals = 0): Buffer =>
  u16(0x1234, 0x8180, questions, answers, authorities, additionals);
const question = Buffer.concat([name("a", "example"), u16(types.A, 1)]);

/** A record whose name is that of the question. */
function record(type: number, ttl: number, data: Buffer, length = data.length): Buffer {
  const fixed = Buffer.concat([u16(0xc00c, type, 1), Buffer.alloc(4), u16(length)]);
  fixed.writeUInt32BE(ttl, 6);
  return Buffer.concat([fixed, data]);
}
const address = record(types.A, 300, Buffer.of(192, 0, 2, 1));
const soa = (ttl: number, minimum: number, names = Buffer.concat([name(), name()])): Buffer => {
  const numbers = Buffer.alloc(20);
  numbers.writeUInt32BE(minimum, 16);
  return record(types.SOA, ttl, Buffer.concat([names, numbers]));
};

test("records of answers and authorities are found with their places, additional ones are left out", () => {
  const message = Buffer.concat([
    header(1, 2, 1, 1),
    question,
    address,
    record(types.TXT, 7, Buffer.alloc(0)),
    soa(60, 30),
    address,
  ]);
  const walked = walkResponse(message);
  assert.deepEqual([walked?.id, walked?.bits, walked?.question], [0x1234, 0x8180, question]);
  assert.deepEqual(
    walked?.records.map(({ section, type, ttl, dataAt, end }) => [section, type, ttl, end - dataAt]),
    [
      ["answer", types.A, 300, 4],
      ["answer", types.TXT, 7, 0],
      ["authority", types.SOA, 60, 22],
    ],
  );
  for (const { ttlAt, ttl } of walked?.records ?? []) assert.equal(message.readUInt32BE(ttlAt), ttl);
});

test("names may be written out, or end with a pointer", () => {
  const longest = name("x".repeat(63), "y");
  for (const owner of [longest, Buffer.concat([Buffer.of(1, 0x78), u16(0xc00c)]), name()]) {
    const message = Buffer.concat([header(1, 1, 0), question, owner, address.subarray(2)]);
    assert.equal(walkResponse(message)?.records.length, 1);
  }
});

const whole = Buffer.concat([header(1, 1, 0), question, address]);
for (const [what, message] of [
  ["no header", whole.subarray(0, 11)],
  ["no question", Buffer.concat([header(0, 1, 0), address])],
  ["two questions", Buffer.concat([header(2, 0, 0), question, question])],
  ["a question that is cut", whole.subarray(0, 12 + question.length - 1)],
  ["a name without an end", Buffer.concat([header(1, 0, 0), Buffer.of(1, 0x78)])],
  ["a label of 64 bytes", Buffer.concat([header(1, 0, 0), Buffer.of(64), Buffer.alloc(64, 0x78), Buffer.of(0), u16(1, 1)])],
  ["fewer records than it says", Buffer.concat([header(1, 2, 0), question, address])],
  ["fewer authorities than it says", Buffer.concat([header(1, 1, 1), question, address])],
  ["a record that is cut", whole.subarray(0, -1)],
  ["a record whose length is cut", whole.subarray(0, -5)],
  ["half a pointer", Buffer.concat([header(1, 1, 0), question, Buffer.of(0xc0)])],
] as const) {
  test(`a message with ${what} is malformed`, () => assert.equal(walkResponse(message), undefined));
}

test("a TTL has 31 bits", () => {
  const ttlOf = (ttl: number) =>
    walkResponse(Buffer.concat([header(1, 1, 0), question, record(types.A, ttl, Buffer.alloc(4))]))?.records[0]?.ttl;
  assert.deepEqual([ttlOf(0x7fffffff), ttlOf(0x80000000)], [0x7fffffff, 0x7fffffff]);
});

const lifetime = (isNegative: boolean, answers: readonly Buffer[], authorities: readonly Buffer[]): number | undefined => {
  const message = Buffer.concat([header(1, answers.length, authorities.length), question, ...answers, ...authorities]);
  return lifetimeOf(message, walkResponse(message)?.records as readonly RecordPlace[], isNegative);
};

test("an answer may be repeated as long as its shortest record", () => {
  const short = record(types.A, 20, Buffer.alloc(4));
  assert.equal(lifetime(false, [address, short, address], []), 20);
  assert.equal(lifetime(false, [address], [soa(10, 5)]), 10);
  assert.equal(lifetime(false, [], []), undefined);
});

test("that there is none may be repeated as long as the authority's SOA record, its last number and the records beside it say", () => {
  assert.equal(lifetime(true, [], [soa(60, 30)]), 30);
  assert.equal(lifetime(true, [], [soa(20, 30)]), 20);
  const [alias, server] = [record(types.CNAME, 5, name("b")), record(types.NS, 1, name("ns"))];
  assert.deepEqual([lifetime(true, [alias], [soa(60, 30)]), lifetime(true, [], [server, soa(60, 30)])], [5, 1]);
  assert.equal(lifetime(true, [record(types.CNAME, 60, name("b"))], [record(types.NS, 60, name("ns")), soa(60, 30)]), 30);
  assert.equal(lifetime(true, [soa(60, 30)], []), undefined);
  assert.equal(lifetime(true, [], [record(types.NS, 1, name("ns"))]), undefined);
  assert.equal(lifetime(true, [], [record(types.SOA, 60, Buffer.alloc(21))]), undefined);
});

test("an SOA record is read when it has at least two names and five numbers, and only in the authority section", () => {
  const message = Buffer.alloc(40);
  message.writeUInt32BE(7, 22 - 4);
  const soa: RecordPlace = { section: "authority", type: types.SOA, ttlAt: 0, ttl: 10, dataAt: 0, end: 22 };
  assert.equal(lifetimeOf(message, [soa], true), 7);
  assert.equal(lifetimeOf(message, [{ ...soa, ttl: 6 }], true), 6);
  assert.equal(lifetimeOf(message, [{ ...soa, dataAt: 1 }], true), undefined);
  assert.equal(lifetimeOf(message, [{ ...soa, section: "answer" }], true), undefined);
  assert.equal(lifetimeOf(message, [{ ...soa, type: types.NS }, soa], true), 7);
});

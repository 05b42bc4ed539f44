import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "../../process/event-loop/turns.ts";
import { cpuMsOf } from "../../testing/cpu-time.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { decodeBodyObject, decodeObject } from "./codec.ts";
import { strictComplaints } from "./json-decode.ts";
import { maxBodyValues, refuseManyValues } from "./json-parse.ts";
import { encodeUnknown } from "./protobuf.ts";

/** Limits per body: three times the cost of the most expensive one on a shared machine. */
const maxCpuMs = 500;
const maxExtraBytes = 150 * 1024 * 1024;
const megabyte = 1024 * 1024;

const configMap = { group: "", version: "v1", kind: "ConfigMap" };
const pod = { ...configMap, kind: "Pod" };
const json = "application/json";
const yaml = "application/yaml";
const protobuf = "application/vnd.kubernetes.protobuf";

const times = (n: number, text: string): string => text.repeat(n);
const each = (n: number, make: (i: number) => string, separator = ","): string =>
  Array.from({ length: n }, (_, i) => make(i)).join(separator);
const field = (tag: number, bytes: Buffer): Buffer => Buffer.concat([Buffer.from([tag, ...varint(bytes.length)]), bytes]);

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return [...bytes, left];
    bytes.push((left & 127) | 128);
  }
}

const inEnvelope = (raw: Buffer, kind = "ConfigMap"): Buffer => encodeUnknown({ apiVersion: "v1", kind, raw });

/** Billion laughs: nine anchors, each with nine aliases of the previous one, 9^9 elements in total. */
const nineLevels = each(9, (i) => `a${i}: &a${i} [${each(9, () => (i === 0 ? "x" : `*a${i - 1}`))}]`, "\n");

/** A CustomResourceDefinition with nested schemas (`not`). */
function deepSchema(levels: number): Buffer {
  let schema = Buffer.alloc(0);
  for (let i = 0; i < levels; i++) schema = Buffer.concat([Buffer.from([0xe2, 0x01, ...varint(schema.length)]), schema]);
  const version = field(0x22, field(0x0a, schema));
  const raw = field(0x12, field(0x3a, version));
  return encodeUnknown({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", raw });
}

const bodies: readonly { name: string; mediaType: string; body: () => Buffer | string; kind?: typeof pod; refused?: false }[] = [
  { name: "aliases of aliases", mediaType: yaml, body: () => nineLevels },
  {
    name: "merges of merges",
    mediaType: yaml,
    body: () => `a0: &a0 {k: v}\n${each(30, (i) => `a${i + 1}: &a${i + 1} {<<: [*a${i},*a${i}]}`, "\n")}`,
  },
  {
    name: "one large mapping merged often",
    mediaType: yaml,
    body: () => `a: &a {${each(8000, (i) => `k${i}: 1`)}}\n${each(99, (i) => `b${i}: {<<: *a}`, "\n")}`,
  },
  { name: "3 MB of [", mediaType: yaml, body: () => `a: ${times(3 * megabyte - 10, "[")}` },
  { name: "3 MB of [x,", mediaType: yaml, body: () => times(megabyte, "[x,") },
  { name: "3 MB of - ", mediaType: yaml, body: () => times(1.5 * megabyte, "- ") },
  { name: "3 MB of ? ", mediaType: yaml, body: () => times(1.5 * megabyte, "? ") },
  { name: "3 MB of {a: ", mediaType: yaml, body: () => times(0.7 * megabyte, "{a: ") },
  { name: "2,000 levels of indentation", mediaType: yaml, body: () => each(2000, (i) => `${times(i, " ")}a:`, "\n") },
  { name: "100,000 anchors", mediaType: yaml, body: () => each(100_000, (i) => `k${i}: &a${i} 1`, "\n") },
  { name: "100,000 aliases", mediaType: yaml, body: () => `a: &a 1\n${each(100_000, (i) => `k${i}: *a`, "\n")}` },
  { name: "200,000 keys", mediaType: yaml, body: () => each(200_000, (i) => `k${i}: v`, "\n") },
  { name: "100,000 documents", mediaType: yaml, body: () => times(100_000, "---\na: 1\n") },
  { name: "3 MB of line ends", mediaType: yaml, body: () => times(3 * megabyte, "\n") },
  { name: "3 MB of comments", mediaType: yaml, body: () => times(1.5 * megabyte, "#\n") },
  { name: "a million lines of text", mediaType: yaml, body: () => `a: |\n${times(megabyte, " x\n")}` },
  { name: "3 MB of digits", mediaType: yaml, body: () => `a: ${times(3 * megabyte - 10, "9")}` },
  {
    name: "a tag that would run code",
    mediaType: yaml,
    body: () => "kind: ConfigMap\na: !!js/function 'function () { throw 1 }'\n",
    refused: false,
  },
  { name: "3 MB of [", mediaType: json, body: () => times(3 * megabyte, "[") },
  { name: "100,000 levels", mediaType: json, body: () => `${times(100_000, '{"a":')}1${times(100_000, "}")}` },
  { name: "200,000 keys", mediaType: json, body: () => `{"data":{${each(200_000, (i) => `"k${i}":""`)}}}` },
  { name: "a key 300,000 times", mediaType: json, body: () => `{"data":{${each(300_000, () => '"k":""')}}}` },
  {
    name: "a million containers",
    mediaType: json,
    kind: pod,
    body: () => `{"spec":{"containers":[${each(1_000_000, () => "{}")}]}}`,
  },
  {
    name: "170,000 quantities",
    mediaType: json,
    kind: pod,
    body: () => `{"spec":{"overhead":{${each(170_000, (i) => `"k${i}":"${i}m"`)}}}}`,
  },
  { name: "3 MB of digits", mediaType: json, body: () => `{"a":${times(3 * megabyte - 10, "9")}}`, refused: false },
  {
    name: "a quantity of 3 MB",
    mediaType: json,
    kind: pod,
    body: () => `{"spec":{"overhead":{"cpu":"${times(3 * megabyte - 100, "9")}"}}}`,
  },
  {
    name: "a quantity with a large exponent",
    mediaType: json,
    kind: pod,
    body: () => '{"spec":{"overhead":{"cpu":"1e999999999"}}}',
    refused: false,
  },
  { name: "3 MB of escapes", mediaType: json, body: () => times(1.5 * megabyte, '"\\') },
  {
    name: "an escaped text of 3 MB",
    mediaType: json,
    body: () => `{"data":{"a":"${times(500_000, "\\u0041")}"}}`,
    refused: false,
  },
  { name: "bytes compressed with gzip", mediaType: json, body: () => Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]) },
  {
    name: "a million unknown fields",
    mediaType: protobuf,
    body: () => inEnvelope(Buffer.alloc(3 * megabyte - 100, "f801", "hex")),
    refused: false,
  },
  {
    name: "a million containers",
    mediaType: protobuf,
    kind: pod,
    body: () => inEnvelope(field(0x12, Buffer.alloc(2_000_000, "1200", "hex")), "Pod"),
  },
  { name: "a million entries of a map", mediaType: protobuf, body: () => inEnvelope(Buffer.alloc(2_000_000, "1200", "hex")) },
  { name: "a length beyond the end", mediaType: protobuf, body: () => inEnvelope(Buffer.from("12ffffffff07", "hex")) },
  {
    name: "a length beyond 64 bits",
    mediaType: protobuf,
    body: () => inEnvelope(Buffer.from("12ffffffffffffffffffff07", "hex")),
  },
  { name: "3 MB of groups", mediaType: protobuf, body: () => inEnvelope(Buffer.alloc(3 * megabyte - 100, 0x0b)) },
  { name: "a wrong wire type", mediaType: protobuf, body: () => inEnvelope(Buffer.from("1001", "hex")) },
  { name: "a varint without end", mediaType: protobuf, body: () => inEnvelope(Buffer.alloc(1000, 0xff)) },
  { name: "3,000 messages inside each other", mediaType: protobuf, body: () => deepSchema(3000) },
  { name: "an envelope that ends early", mediaType: protobuf, body: () => inEnvelope(Buffer.alloc(100)).subarray(0, 50) },
];

for (const { name, mediaType, body, kind = configMap, refused = true } of bodies) {
  test(`${name} as ${mediaType} ${refused ? "are refused with 4xx" : "do no harm"}, and soon`, () => {
    const made = body();
    const bytes = typeof made === "string" ? Buffer.from(made) : made;
    const memory = process.memoryUsage().rss;
    let code = 200;
    const tookMs = cpuMsOf(() => {
      try {
        refuseManyValues(bytes);
        decodeObject(bytes, mediaType, kind, { strict: "warn", maxElements: maxBodyValues });
      } catch (err) {
        code = (err as { code?: number }).code ?? 500;
        assert.ok(code >= 400 && code < 500, String((err as Error).stack));
      }
    });
    assert.ok(tookMs < maxCpuMs, `took ${tookMs} ms`);
    assert.ok(process.memoryUsage().rss - memory < maxExtraBytes);
    assert.equal(code >= 400, refused, String(code));
  });
}

test("nothing of a body reaches the prototype of objects", () => {
  const evil = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"data":{"__proto__":"x"}}';
  const { object } = decodeObject(Buffer.from(evil), json, configMap);
  decodeObject(Buffer.from(`a: &a {__proto__: {polluted: 1}}\n<<: *a\n${evil.slice(0, 0)}`), yaml, configMap);
  assert.equal(({} as { polluted?: number }).polluted, undefined);
  assert.deepEqual(Object.getOwnPropertyNames((object as unknown as { data: object }).data), ["__proto__"]);
  assert.equal(Object.getPrototypeOf(object), Object.prototype);
});

test("counts values, not characters of strings", () => {
  refuseManyValues(Buffer.from(`{"data":{"a":"${times(200_000, ",")}","b":"${times(100_000, '\\"{')}"}}`));
  refuseManyValues(Buffer.from(`[${times(1_000_000, "1,")}1]`)); // plain elements are cheap
  assert.throws(() => refuseManyValues(Buffer.from(`{${times(maxBodyValues, '"a":1,')}"a":1}`)), {
    code: 413,
    message: `Request entity too large: the body has more than ${maxBodyValues} values`,
  });
});

test("a body may have just as many values as are allowed", () => {
  const list = (values: number): Buffer => Buffer.from(` [${"[]".repeat(values - 1)}]`);
  refuseManyValues(list(maxBodyValues));
  assert.throws(() => refuseManyValues(list(maxBodyValues + 1)), /has more than/);
});

for (const { name, expected, body } of [
  { name: "unknown fields", expected: configMap, body: `{${each(140_000, (i) => `"f${i}":1`)}}` },
  {
    name: "a custom object's fields",
    expected: { group: "example.com", version: "v1", kind: "Widget" },
    body: `{"apiVersion":"example.com/v1","kind":"Widget","spec":{${each(140_000, (i) => `"f${i}":1`)}}}`,
  },
]) {
  test(`the event loop turns while many of ${name} are decoded`, async () => {
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await decodeBodyObject(Buffer.from(body), json, expected, { turns: new Turns() });
    isOver = true;
    assert.ok(turns >= 3, `${turns} turns`);
  });
}

test("unknown fields beyond the reported number are not inspected", () => {
  let seen = 0;
  const body = new Proxy(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, 1])), {
    get(target, key) {
      seen++;
      return Reflect.get(target, key) as unknown;
    },
  });
  assert.equal(strictComplaints(body, scheme.kind(configMap) as TypeDescriptor).length, 100);
  assert.equal(seen, 100);
});

import type { Random } from "./random.ts";

type Spoil = (bytes: Buffer, random: Random) => Buffer;

const at = (bytes: Buffer, random: Random): number => random.below(bytes.length + 1);

const insert = (bytes: Buffer, where: number, what: string | Buffer): Buffer =>
  Buffer.concat([bytes.subarray(0, where), Buffer.from(what as string, "latin1"), bytes.subarray(where)]); // cast: every mutation that inserts has a text

/** Corruptions for any encoding: truncation, a flipped bit, a duplicated range, a removed range. */
const anywhere: readonly Spoil[] = [
  (bytes, random) => bytes.subarray(0, at(bytes, random)),
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    const place = random.below(Math.max(copy.length, 1));
    if (copy.length > 0) copy[place] = copy[place]! ^ (1 << random.below(8));
    return copy;
  },
  (bytes, random) => {
    const [from, to] = [at(bytes, random), at(bytes, random)].sort((a, b) => a - b) as [number, number]; // cast: two offsets
    return insert(bytes, to, bytes.subarray(from, to));
  },
  (bytes, random) => {
    const from = at(bytes, random);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + random.below(20))]);
  },
];

/** Byte sequences that are problematic in JSON; `\x` denotes bytes, not characters. */
const texts: readonly string[] = [
  ...["\x00", "\xff\xfe", "\xc0\xaf", "\xed\xa0\x80", "\xef\xbb\xbf", '\\ud800"', "\\u0000", "\\x", "\x7f", "\u0085"],
  ...['{"__proto__":{"a":1}},', '"constructor":{"prototype":{}},', '"kind":"Pod",', '"metadata":null,', "//", "/*", "NaN", "-0"],
  ...[
    "1e400",
    "-9223372036854775809",
    "18446744073709551616",
    "0x10",
    "01",
    "1.",
    "&a ",
    "*a",
    "!!js/function ",
    "<<: ",
    "---\n",
    "\t",
  ],
];

const jsonOnly: readonly Spoil[] = [
  (bytes, random) => insert(bytes, at(bytes, random), random.pick(texts)),
  (bytes, random) =>
    Buffer.from(bytes.toString().replace(random.pick(["}", "{", ",", ":", '"']), random.pick(["", ",,", "}", "[", '"']))),
  // Duplicate keys, one of them nested: the whole object as a field of itself, twice.
  (bytes) => Buffer.from(bytes.toString().replace("{", () => `{"spec":${bytes.toString()},"spec":{},`)),
  (bytes, random) => Buffer.from(`${'{"spec":['.repeat(random.pick([100, 10_000]))}${bytes.toString()}`),
];

/** Varints: maximum, negative, and unterminated ones. */
const varints: readonly Buffer[] = [
  "ffffffffffffffffff01",
  "ffffffff0f",
  "ffffffffffffffff7f",
  "8080808080808080808080",
  "80",
].map((hex) => Buffer.from(hex, "hex"));

const protobufOnly: readonly Spoil[] = [
  (bytes, random) => insert(bytes, at(bytes, random), random.pick(varints)),
  (bytes, random) => Buffer.concat([bytes, Buffer.from([(random.below(30) << 3) | random.below(8)]), random.pick(varints)]),
  // Deeply nested groups, to exhaust the stack of recursive parsers.
  (bytes, random) => Buffer.concat([bytes, Buffer.alloc(random.pick([50, 20_000]), 0x0b)]),
  (bytes) => Buffer.concat([bytes, bytes.subarray(4)]),
];

/** Corrupts a request body. */
export function spoilBytes(bytes: Buffer, encoding: "json" | "protobuf", random: Random): Buffer {
  return random.pick([...anywhere, ...(encoding === "json" ? jsonOnly : protobufOnly)])(bytes, random);
}

import type { Below } from "./random.ts";

export interface Material {
  /** Inputs from which pieces are copied. */
  readonly others: readonly Buffer[];
  readonly words: readonly Buffer[];
  readonly maxBytes: number;
}

/** Applies one to eight mutations; the result is at most `maxBytes` long. */
export function mutated(input: Buffer, material: Material, below: Below): Buffer {
  let result: Buffer = Buffer.from(input);
  for (let left = 1 << below(4); left > 0; left--) {
    const change = changes[below(changes.length)]!;
    result = change(result, material, below).subarray(0, material.maxBytes);
  }
  return result;
}

type Change = (bytes: Buffer, material: Material, below: Below) => Buffer;

/** Bytes at which decoders commonly branch. */
const edges = [0, 1, 0x0a, 0x20, 0x22, 0x2f, 0x30, 0x39, 0x5c, 0x7f, 0x80, 0xc0, 0xe2, 0xf0, 0xfe, 0xff];

const changes: readonly Change[] = [
  (bytes, _material, below) => withByte(bytes, below, () => below(256)),
  (bytes, _material, below) => withByte(bytes, below, () => edges[below(edges.length)]!),
  (bytes, _material, below) => withByte(bytes, below, (byte) => byte ^ (1 << below(8))),
  (bytes, _material, below) => withByte(bytes, below, (byte) => (byte + below(35) - 17) & 0xff),
  (bytes, _material, below) => {
    const [from, until] = piece(bytes, below);
    return splice(bytes, from, until, Buffer.alloc(0));
  },
  (bytes, { maxBytes }, below) => {
    const [from, until] = piece(bytes, below);
    const times = Math.min(1 << below(8), Math.ceil(maxBytes / Math.max(1, until - from)));
    return splice(bytes, from, from, repeated(bytes.subarray(from, until), times));
  },
  (bytes, _material, below) => {
    const [from, until] = piece(bytes, below);
    const at = below(bytes.length + 1);
    return splice(bytes, at, at, bytes.subarray(from, until));
  },
  putWord,
  putWord,
  replaceByWord,
  (bytes, { others }, below) => {
    const other = others[below(others.length)] ?? bytes;
    const [from, until] = piece(other, below);
    const [start, end] = piece(bytes, below);
    return splice(bytes, start, below(2) === 0 ? start : end, other.subarray(from, until));
  },
  (bytes, { others }, below) => {
    const other = others[below(others.length)] ?? bytes;
    return Buffer.concat([bytes.subarray(0, below(bytes.length + 1)), other.subarray(below(other.length + 1))]);
  },
  withNumber,
  (bytes, _material, below) => bytes.subarray(0, below(bytes.length + 1)),
];

function putWord(bytes: Buffer, { words }: Material, below: Below): Buffer {
  const at = below(bytes.length + 1);
  return splice(bytes, at, at, words[below(words.length)] ?? Buffer.from([below(256)]));
}

function replaceByWord(bytes: Buffer, { words }: Material, below: Below): Buffer {
  const [from, until] = piece(bytes, below);
  return splice(bytes, from, until, words[below(words.length)] ?? Buffer.from([below(256)]));
}

const numbers = [
  "0",
  "-1",
  "00",
  "127",
  "128",
  "255",
  "256",
  "65536",
  "2147483648",
  "4294967296",
  "9007199254740993",
  "9223372036854775807",
];
const moreNumbers = [
  "9223372036854775808",
  "18446744073709551616",
  "1e400",
  "1e-400",
  "-0",
  "0.1",
  "1e3",
  "99999999999999999999999999999999",
];

/** Replaces a run of decimal digits by another number. */
function withNumber(bytes: Buffer, _material: Material, below: Below): Buffer {
  const runs = [...bytes.toString("latin1").matchAll(/\d+/g)];
  const run = runs[below(Math.max(1, runs.length))];
  const all = [...numbers, ...moreNumbers];
  if (run === undefined) return bytes;
  return splice(bytes, run.index, run.index + run[0].length, Buffer.from(all[below(all.length)]!));
}

function withByte(bytes: Buffer, below: Below, next: (byte: number) => number): Buffer {
  if (bytes.length === 0) return Buffer.from([next(0)]);
  const at = below(bytes.length);
  const result = Buffer.from(bytes);
  result[at] = next(bytes[at]!);
  return result;
}

/** A random range, mostly short. */
function piece(bytes: Buffer, below: Below): [from: number, until: number] {
  const from = below(bytes.length + 1);
  return [from, Math.min(bytes.length, from + below(1 << (1 + below(6))) + 1)];
}

function repeated(bytes: Buffer, times: number): Buffer {
  return Buffer.concat(Array.from({ length: times }, () => bytes));
}

function splice(bytes: Buffer, from: number, until: number, put: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, from), put, bytes.subarray(until)]);
}

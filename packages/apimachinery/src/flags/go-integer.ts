import { goQuote } from "../objects/meta/go-quote.ts";

/** Parsing rules of a Go integer type. */
export interface GoInteger {
  readonly signed: boolean;
  readonly bits: 32 | 64;
  /** Accepts base prefixes, leading zeros for octal, and `_` between digits. */
  readonly anyBase: boolean;
}

const digits = "[0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*";
const prefixed = new RegExp(`^([+-]?)(0[xXoObB]_?|0_?(?=[0-9]))?(${digits})$`);
const bases: Readonly<Record<string, { digits: RegExp; prefix: string }>> = {
  "": { digits: /^[0-9]+$/, prefix: "" },
  "0": { digits: /^[0-7]+$/, prefix: "0o" },
  "0o": { digits: /^[0-7]+$/, prefix: "0o" },
  "0b": { digits: /^[01]+$/, prefix: "0b" },
  "0x": { digits: /^[0-9a-f]+$/, prefix: "0x" },
};

/**
 * Parses `10`, `0x1f`, `0o17`, `017`, `0b11`, `1_000`.
 * @returns the nearest number, as int64 may exceed 2^53
 * @throws Error with Go's text
 * Source: Go strconv.ParseInt and ParseUint with base 0
 */
export function parseGoInteger(text: string, { signed, bits, anyBase }: GoInteger): number {
  const refuse = (why: string): Error =>
    new Error(`strconv.${signed ? "ParseInt" : "ParseUint"}: parsing ${goQuote(text)}: ${why}`);
  const [, sign = "", written = "", rest = ""] = (text.length > 200 ? null : prefixed.exec(text)) ?? [];
  const base = anyBase ? bases[written.replace("_", "").toLowerCase()] : bases[""];
  const plain = (anyBase ? rest.replaceAll("_", "") : written + rest).toLowerCase();
  if (base === undefined || !base.digits.test(plain) || (sign !== "" && !signed)) throw refuse("invalid syntax");
  const value = BigInt(base.prefix + plain) * (sign === "-" ? -1n : 1n);
  const fits = signed ? BigInt.asIntN(bits, value) === value : BigInt.asUintN(bits, value) === value;
  if (!fits) throw refuse("value out of range");
  return Number(value);
}

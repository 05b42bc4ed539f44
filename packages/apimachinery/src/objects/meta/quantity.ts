/** Notation: `1Gi`, `1G` or `1e9`. */
type QuantityFormat = "BinarySI" | "DecimalSI" | "DecimalExponent";

const formText = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";
const quantityFormError = `quantities must match the regular expression '${formText}'`;
const quantitySuffixError = "unable to parse quantity's suffix";

const form = /^([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)$/;
const decimalSuffixes: readonly string[] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]; // 10^-9, 10^-6, …
const binarySuffixes: readonly string[] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const nano = 1_000_000_000n;
const largest = (2n ** 63n - 1n) * nano;
/** Larger exponents are clamped: computing huge powers would block the event loop. */
const largestExponent = 40;

/**
 * An immutable resource amount with a resolution of 10^-9; smaller fractions are rounded away from zero.
 * Source: k8s.io/apimachinery pkg/api/resource/quantity.go
 */
export class Quantity {
  readonly nanos: bigint;
  readonly format: QuantityFormat;

  constructor(nanos: bigint, format: QuantityFormat) {
    this.nanos = nanos;
    this.format = format;
  }

  /** @throws Error with upstream's text for an invalid quantity */
  static parse(text: string): Quantity {
    const result = parse(text);
    if (typeof result === "string") throw new Error(result);
    return result;
  }

  /** @returns undefined when the text is not a quantity */
  static tryParse(text: string): Quantity | undefined {
    const result = parse(text);
    return typeof result === "string" ? undefined : result;
  }

  static fromValue(value: number | bigint, format: QuantityFormat = "DecimalSI"): Quantity {
    return new Quantity(scaled(value, 9), format);
  }

  static fromMilli(milli: number | bigint, format: QuantityFormat = "DecimalSI"): Quantity {
    return new Quantity(scaled(milli, 6), format);
  }

  get isZero(): boolean {
    return this.nanos === 0n;
  }

  get sign(): -1 | 0 | 1 {
    return this.nanos > 0n ? 1 : this.nanos < 0n ? -1 : 0;
  }

  /** Three-way comparison: -1 when this is less than `other`. */
  cmp(other: Quantity): -1 | 0 | 1 {
    return this.nanos < other.nanos ? -1 : this.nanos > other.nanos ? 1 : 0;
  }

  equals(other: Quantity): boolean {
    return this.nanos === other.nanos;
  }

  /** The result has this quantity's format, or that of `other` when this is zero, as upstream. */
  add(other: Quantity): Quantity {
    return new Quantity(this.nanos + other.nanos, this.isZero ? other.format : this.format);
  }

  sub(other: Quantity): Quantity {
    return new Quantity(this.nanos - other.nanos, this.isZero ? other.format : this.format);
  }

  /** The amount in units, rounded away from zero. */
  value(): number {
    return Number(this.scaledValue(0));
  }

  /** The amount in thousandths, rounded away from zero. */
  milliValue(): number {
    return Number(this.scaledValue(-3));
  }

  /** The amount in units of 10^`scale` (0: units, -3: milli, 3: kilo), rounded away from zero. */
  scaledValue(scale: number): bigint {
    return scale <= -9 ? this.nanos * 10n ** BigInt(-9 - scale) : divideUp(this.nanos, 10n ** BigInt(9 + scale));
  }

  /** Canonical form: no fraction, the largest suffix without loss of precision. */
  toString(): string {
    if (this.nanos === 0n) return "0";
    const whole = this.nanos % nano === 0n;
    if (this.format === "BinarySI" && whole) {
      const value = this.nanos / nano;
      if (value <= -1024n || value >= 1024n) return binaryText(value);
    }
    return decimalText(this.nanos, this.format === "DecimalExponent");
  }

  /** The canonical text, as `toString`. */
  toJSON(): string {
    return this.toString();
  }
}

/** @returns the quantity, or the error text */
const parse = remembered(parseText);

/** @returns the canonical form of a quantity; undefined for an invalid text */
export const canonicalQuantity = remembered((text) => Quantity.tryParse(text)?.toString());

/** Memoizes a function of quantity texts, as pods have few different ones. Bounded, as texts come from users. */
function remembered<T>(read: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    let value = known.get(text);
    if (value !== undefined) return value;
    value = read(text);
    if (text.length > 32) return value;
    if (known.size >= 4096) known.clear();
    known.set(text, value);
    return value;
  };
}

function parseText(text: string): Quantity | string {
  if (text.length > 1000) return quantityFormError;
  const match = form.exec(text);
  if (match === null) return quantityFormError;
  const [, sign, integer = "", fraction = "", suffix = ""] = match;
  if (integer === "" && fraction === "")
    return text.includes(".") ? "unable to parse numeric part of quantity" : quantityFormError;
  const unit = parseSuffix(suffix);
  if (unit === undefined) return quantitySuffixError;
  const digits = (integer + fraction).replace(/^0+/, "");
  if (digits === "") return new Quantity(0n, unit.format);
  let nanos = unscaled(BigInt(digits), fraction.length, unit);
  // As upstream: up to 18 digits are exact even beyond 2^63; amounts that need inf.Dec are capped at 2^63 - 1.
  if (nanos > largest && !(digits.length <= 18 && unit.format !== "BinarySI" && unit.exponent <= 18)) nanos = largest;
  const format = unit.format === "BinarySI" && nanos < nano ? "DecimalSI" : unit.format;
  return new Quantity(sign === "-" ? -nanos : nanos, format);
}

interface Unit {
  readonly base: 2 | 10;
  readonly exponent: number;
  readonly format: QuantityFormat;
}

function parseSuffix(suffix: string): Unit | undefined {
  const binary = suffix === "" ? -1 : binarySuffixes.indexOf(suffix);
  if (binary > 0) return { base: 2, exponent: binary * 10, format: "BinarySI" };
  const decimal = decimalSuffixes.indexOf(suffix);
  if (decimal >= 0) return { base: 10, exponent: decimal * 3 - 9, format: "DecimalSI" };
  if (!/^[eE][+-]?[0-9]{1,18}$/.test(suffix)) return undefined;
  const exponent = Number(suffix.slice(1));
  return { base: 10, exponent: Math.max(-largestExponent, Math.min(largestExponent, exponent)), format: "DecimalExponent" };
}

/** digits × 10^-fractionDigits × unit in units of 10^-9, rounded up. */
function unscaled(digits: bigint, fractionDigits: number, unit: Unit): bigint {
  if (unit.base === 2) return divideUp(digits * 2n ** BigInt(unit.exponent) * nano, 10n ** BigInt(fractionDigits));
  const power = unit.exponent + 9 - fractionDigits;
  return power >= 0 ? digits * 10n ** BigInt(power) : divideUp(digits, 10n ** BigInt(-power));
}

function divideUp(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  if (quotient * divisor === value) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}

function scaled(value: number | bigint, digits: number): bigint {
  if (typeof value === "bigint") return value * 10n ** BigInt(digits);
  if (Number.isSafeInteger(value)) return BigInt(value) * 10n ** BigInt(digits);
  return BigInt(Math.ceil(value)) * 10n ** BigInt(digits);
}

function binaryText(value: bigint): string {
  let power = 0;
  while (power < 6 && value % 1024n === 0n) {
    value /= 1024n;
    power++;
  }
  return `${value}${binarySuffixes[power]}`;
}

function decimalText(nanos: bigint, exponential: boolean): string {
  let power = 0;
  const last = exponential ? Number.POSITIVE_INFINITY : decimalSuffixes.length - 1;
  while (power < last && nanos % 1000n === 0n) {
    nanos /= 1000n;
    power++;
  }
  if (!exponential) return `${nanos}${decimalSuffixes[power]}`;
  return power === 3 ? `${nanos}` : `${nanos}e${power * 3 - 9}`;
}

const decimal: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** The value and decimal scale with which Go stores a quantity (value × 10^scale); binary suffixes are multiplied out. */
export function quantityAmount(text: string): { value: bigint; scale: number } {
  const [, sign = "", whole = "", , fraction = "", suffix = ""] = /^([+-]?)([0-9]*)(\.([0-9]*))?(.*)$/.exec(text) ?? [];
  const digits = BigInt(`${whole}${fraction}` || "0") * (sign === "-" ? -1n : 1n);
  const power = binary.indexOf(suffix);
  if (power > 0) return { value: digits << BigInt(10 * power), scale: -fraction.length };
  const exponent = /^[eE]([+-]?[0-9]{1,3})$/.exec(suffix)?.[1];
  return { value: digits, scale: (exponent === undefined ? (decimal[suffix] ?? 0) : Number(exponent)) - fraction.length };
}

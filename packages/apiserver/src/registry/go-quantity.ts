import { GoText } from "@coxswain/apimachinery/errors/go-syntax";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import { Quantity } from "@coxswain/apimachinery/meta/quantity";

/**
 * A quantity as Go's `%#v` writes it, which is how upstream shows those that it passes by value:
 * `resource.Quantity{i:resource.int64Amount{value:500, scale:-3}, …, s:"500m", Format:"DecimalSI"}`.
 */
export function goQuantity(text: string): GoText {
  const { value, scale } = amount(text);
  const format = Quantity.tryParse(text)?.format ?? "DecimalSI";
  const parts = `i:resource.int64Amount{value:${value}, scale:${scale}}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}`;
  return new GoText(`resource.Quantity{${parts}, s:${goQuote(text)}, Format:${goQuote(format)}}`);
}

const decimal: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** The digits and the power of ten they stand for; binary suffixes are multiplied out. */
function amount(text: string): { value: bigint; scale: number } {
  const [, sign = "", whole = "", , fraction = "", suffix = ""] = /^([+-]?)([0-9]*)(\.([0-9]*))?(.*)$/.exec(text) ?? [];
  const digits = BigInt(`${whole}${fraction}` || "0") * (sign === "-" ? -1n : 1n);
  const power = binary.indexOf(suffix);
  if (power > 0) return { value: digits << BigInt(10 * power), scale: -fraction.length };
  const exponent = /^[eE]([+-]?[0-9]{1,3})$/.exec(suffix)?.[1];
  return { value: digits, scale: (exponent === undefined ? (decimal[suffix] ?? 0) : Number(exponent)) - fraction.length };
}

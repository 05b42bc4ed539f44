import { goQuote } from "./go-quote.ts";

/** A number or a percentage: `3` or `"25%"`. */
export type IntOrString = number | string;

/**
 * @param total the total that a percentage refers to
 * @throws Error for a string that is not a percentage
 * Source: intstr.GetScaledValueFromIntOrPercent
 */
export function scaledValue(value: IntOrString, total: number, roundUp: boolean): number {
  if (typeof value === "number") return value;
  const percent = parsePercent(value);
  if (percent === undefined) throw new Error(`invalid value for IntOrString: ${whyNoPercent(value)}`);
  const exact = (percent * total) / 100;
  return roundUp ? Math.ceil(exact) : Math.floor(exact);
}

/** @returns 25 for `"25%"`; undefined for a text that is not a percentage */
export function parsePercent(text: string): number | undefined {
  return /^[+-]?[0-9]{1,15}%$/.test(text) ? Number(text.slice(0, -1)) : undefined;
}

function whyNoPercent(text: string): string {
  if (!text.endsWith("%")) return "invalid type: string is not a percentage";
  const number = text.slice(0, -1);
  return `invalid value ${goQuote(text)}: strconv.Atoi: parsing ${goQuote(number)}: invalid syntax`;
}

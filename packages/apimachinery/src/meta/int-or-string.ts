import { goQuote } from "./go-quote.ts";

/** A count, or a share of a total: `3` or `"25%"`. */
export type IntOrString = number | string;

/**
 * @param total what a percentage is of
 * @throws Error for a text that is no percentage
 * Source: intstr.GetScaledValueFromIntOrPercent
 */
export function scaledValue(value: IntOrString, total: number, roundUp: boolean): number {
  if (typeof value === "number") return value;
  const percent = parsePercent(value);
  if (percent === undefined) throw new Error(`invalid value for IntOrString: ${whyNoPercent(value)}`);
  const exact = (percent * total) / 100;
  return roundUp ? Math.ceil(exact) : Math.floor(exact);
}

/** @returns 25 for `"25%"`, undefined for any other text. */
export function parsePercent(text: string): number | undefined {
  return /^[+-]?[0-9]{1,15}%$/.test(text) ? Number(text.slice(0, -1)) : undefined;
}

function whyNoPercent(text: string): string {
  if (!text.endsWith("%")) return "invalid type: string is not a percentage";
  const number = text.replaceAll("%", "");
  return `invalid value ${goQuote(text)}: strconv.Atoi: parsing ${goQuote(number)}: invalid syntax`;
}

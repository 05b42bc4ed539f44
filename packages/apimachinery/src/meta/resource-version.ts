import { goQuote } from "./go-quote.ts";

/** The largest revision that we can hold exactly; etcd's are far below. */
const largest = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * The revision of a resourceVersion; `""` and `"0"` both give 0.
 * @throws Error `resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`
 * Source: k8s.io/apiserver pkg/storage/etcd3 APIObjectVersioner.ParseResourceVersion
 */
export function parseResourceVersion(text: string): number {
  if (text === "" || text === "0") return 0;
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  if (!/^[0-9]+$/.test(text)) throw invalid(text, "invalid syntax");
  const digits = text.replace(/^0+/, "");
  if (digits.length > 20 || BigInt(text.slice(-20)) > largest) throw invalid(text, "value out of range");
  return Number(digits);
}

function invalid(text: string, why: string): Error {
  const quoted = goQuote(text);
  return new Error(`resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: ${why}`);
}

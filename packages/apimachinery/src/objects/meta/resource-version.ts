import { goQuote } from "./go-quote.ts";

/** The largest revision that a number represents exactly; revisions of etcd are far below. */
const largest = BigInt(Number.MAX_SAFE_INTEGER);

const largestUint64 = 2n ** 64n - 1n;

/** Fast path: up to 15 digits are always exact. */
const isSmall = (text: string): boolean => /^[0-9]{1,15}$/.test(text);

/**
 * Parses a resourceVersion to an etcd revision; 0 for `""` and `"0"`.
 * @throws Error `resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`
 * Source: k8s.io/apiserver pkg/storage/etcd3 APIObjectVersioner.ParseResourceVersion
 */
export function parseResourceVersion(text: string): number {
  if (text === "" || text === "0") return 0;
  if (isSmall(text)) return Number(text);
  const fault = uint64Fault(text, largest);
  if (fault !== undefined) throw new Error(`resourceVersion: Invalid value: ${goQuote(text)}: ${fault}`);
  return Number(text.replace(/^0+/, ""));
}

/** @returns the error text of Go's strconv.ParseUint; undefined for a valid uint64 */
export function uint64Fault(text: string, most = largestUint64): string | undefined {
  if (isSmall(text)) return undefined;
  const fault = (why: string): string => `strconv.ParseUint: parsing ${goQuote(text)}: ${why}`;
  if (!/^[0-9]+$/.test(text)) return fault("invalid syntax");
  const digits = text.replace(/^0+/, "");
  return digits.length > 20 || BigInt(digits) > most ? fault("value out of range") : undefined;
}

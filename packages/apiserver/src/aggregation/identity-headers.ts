/**
 * Headers by which a front proxy passes the user to an aggregated server; the server trusts them only together with the
 * proxy's client certificate.
 * Source: k8s.io/client-go transport/round_trippers.go SetAuthProxyHeaders
 */
import type { UserInfo } from "../request/context.ts";

/** The caller must remove headers with these names from the client's request first. */
export function identityHeaders({ name, groups, extra = {} }: UserInfo): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = { "x-remote-user": bytesOf(name) };
  if (groups.length > 0) headers["x-remote-group"] = groups.map(bytesOf);
  for (const [key, values] of Object.entries(extra)) {
    if (values.length > 0) headers[`x-remote-extra-${escapedKey(key)}`] = values.map(bytesOf);
  }
  return headers;
}

/** UTF-8 bytes as latin1, because Node writes header values as latin1. */
function bytesOf(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Percent-encodes characters not allowed in header names: `example.com/id` becomes `example.com%2fid`. */
function escapedKey(key: string): string {
  return bytesOf(key).replace(/[^!#$&'*+\-.^_`|~0-9A-Za-z]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

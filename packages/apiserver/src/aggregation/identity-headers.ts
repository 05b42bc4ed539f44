/**
 * How a front proxy tells a server behind it who asks: names that only count from who shows the proxy's certificate.
 * Source: k8s.io/client-go transport/round_trippers.go SetAuthProxyHeaders
 */
import type { UserInfo } from "../request/context.ts";

/** What headers of the client's own with such names must not add to: drop those first. */
export function identityHeaders({ name, groups, extra = {} }: UserInfo): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = { "x-remote-user": bytesOf(name) };
  if (groups.length > 0) headers["x-remote-group"] = groups.map(bytesOf);
  for (const [key, values] of Object.entries(extra)) {
    if (values.length > 0) headers[`x-remote-extra-${escapedKey(key)}`] = values.map(bytesOf);
  }
  return headers;
}

/** Headers carry bytes; those of UTF-8. */
function bytesOf(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** `example.com/id` is no header's name: `example.com%2fid` is. */
function escapedKey(key: string): string {
  return bytesOf(key).replace(/[^!#$&'*+\-.^_`|~0-9A-Za-z]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

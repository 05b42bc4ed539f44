import type { IncomingHttpHeaders } from "node:http";

/** Of one connection, not of the message. Source: RFC 9110, 7.6.1 */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);
/** Clients' own values of the forwarding headers are replaced; `expect` was already answered. */
const ours = new Set(["expect", "forwarded", "x-real-ip"]);

interface Forwarded {
  readonly clientAddress: string;
  readonly protocol: "http" | "https";
  readonly host: string;
  readonly port: number;
}

type Headers = Record<string, string | string[]>;

/** Pure: what a backend gets: the message's own headers, the original Host, and `X-Forwarded-*`. */
export function requestHeaders(received: IncomingHttpHeaders, forwarded: Forwarded): Headers {
  const headers = endToEnd(received, (name) => ours.has(name) || name.startsWith("x-forwarded-") || name === "host");
  // HTTP/2 has a header for each cookie.
  if (Array.isArray(headers["cookie"])) headers["cookie"] = headers["cookie"].join("; ");
  return {
    ...headers,
    host: forwarded.host,
    "x-forwarded-for": forwarded.clientAddress,
    "x-forwarded-host": forwarded.host,
    "x-forwarded-port": String(forwarded.port),
    "x-forwarded-proto": forwarded.protocol,
    "x-real-ip": forwarded.clientAddress,
  };
}

/** Pure: what the client gets of a backend's headers. */
export const responseHeaders = (received: IncomingHttpHeaders): Headers => endToEnd(received, () => false);

function endToEnd(received: IncomingHttpHeaders, isLeftOut: (name: string) => boolean): Headers {
  const named = new Set(
    String(received.connection ?? "")
      .split(",")
      .map((name) => name.trim().toLowerCase()),
  );
  // The header Connection must not remove these: backends rely on them.
  for (const name of ["host", "content-length", "content-type", "authorization", "cookie"]) named.delete(name);
  const headers: Headers = {};
  for (const [name, value] of Object.entries(received)) {
    if (value === undefined || name.startsWith(":") || hopByHop.has(name) || named.has(name) || isLeftOut(name)) continue;
    headers[name] = value;
  }
  return headers;
}

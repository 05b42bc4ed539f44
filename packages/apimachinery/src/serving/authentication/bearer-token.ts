/**
 * `Authorization: Bearer <token>`, and for browsers, which cannot set headers on WebSockets, the subprotocol
 * `base64url.bearer.authorization.k8s.io.<token>`.
 * Source: k8s.io/apiserver pkg/authentication/request/bearertoken, request/websocket/protocol.go
 */
import { timingSafeEqual } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../process/clock/clock.ts";
import type { AuthenticationResult, Authenticator, TokenAuthenticator } from "./authenticator.ts";

/** Most connections always send the same token: the last valid one is cached per connection for this time. */
const rememberMs = 1000;

/** @throws Error for an unknown token */
export function bearerToken(authenticate: TokenAuthenticator, apiAudiences: readonly string[], clock: Clock): Authenticator {
  const audiences = apiAudiences.length > 0 ? apiAudiences : undefined;
  // Clients send the same token with each request of a connection; the entry ends with its connection.
  const last = new WeakMap<TLSSocket, { header: Buffer; result: AuthenticationResult; untilMs: number }>();
  return async (exchange) => {
    const header = exchange.headers.authorization;
    if (header === undefined) return undefined;
    const known = exchange.tls === undefined ? undefined : last.get(exchange.tls);
    if (known !== undefined && isSame(known.header, header) && clock.monotonic() < known.untilMs) return known.result;
    const parts = header.trim().split(" ");
    if (parts.length < 2 || parts[0]?.toLowerCase() !== "bearer") return undefined;
    const token = parts[1]!;
    if (token === "") return undefined;
    const result = await authenticate(token, audiences);
    if (result === undefined) throw new Error("invalid bearer token");
    if (exchange.tls !== undefined)
      last.set(exchange.tls, { header: Buffer.from(header), result, untilMs: clock.monotonic() + rememberMs });
    return result;
  };
}

/** Constant-time comparison: requests of different users may share a proxy's connection, and timing must not reveal a token. */
function isSame(known: Buffer, header: string): boolean {
  const shown = Buffer.from(header);
  return shown.length === known.length && timingSafeEqual(shown, known);
}

const protocolPrefix = "base64url.bearer.authorization.k8s.io.";

/** @throws Error for an unknown token, or when the subprotocols are malformed */
export function webSocketToken(authenticate: TokenAuthenticator, apiAudiences: readonly string[]): Authenticator {
  const audiences = apiAudiences.length > 0 ? apiAudiences : undefined;
  return async (exchange) => {
    if (exchange.upgrade === undefined || exchange.headers.upgrade?.toLowerCase() !== "websocket") return undefined;
    const protocols = (exchange.headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
    const carriers = protocols.filter((protocol) => protocol.startsWith(protocolPrefix));
    if (carriers.length === 0) return undefined;
    if (carriers.length > 1) throw new Error("multiple base64.bearer.authorization tokens specified");
    // The server has to select one of the offered subprotocols, and it cannot be the token.
    if (protocols.length === 1) throw new Error("missing additional subprotocol");
    const encoded = carriers[0]!.slice(protocolPrefix.length);
    if (!/^[A-Za-z0-9_-]+$/.test(encoded)) throw new Error("invalid base64.bearer.authorization token encoding");
    const token = Buffer.from(encoded, "base64url").toString("utf8");
    const result = await authenticate(token, audiences);
    if (result === undefined) throw new Error("invalid bearer token");
    // The token must not reach the backend of a proxied request.
    exchange.headers["sec-websocket-protocol"] = protocols.filter((protocol) => !protocol.startsWith(protocolPrefix)).join(",");
    return result;
  };
}

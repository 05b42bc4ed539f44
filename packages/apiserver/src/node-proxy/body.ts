import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

/** A client's body on its way to another server. */
export interface ForwardedBody {
  /** undefined: there is none. */
  readonly stream?: NodeJS.ReadableStream;
  /** How it is framed, where the client's own headers do not say so. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * With how it is framed, so that no server can read another end of it than this one: of methods that seldom have a body
 * node writes it as it is, and the server would take it for the next request, of ours.
 */
export function forwardedBody(exchange: Exchange): ForwardedBody {
  const { "content-length": length, "transfer-encoding": coding } = exchange.headers;
  if (length !== undefined) return Number(length) === 0 ? { headers: {} } : { stream: exchange.bodyStream(), headers: {} };
  const mayHaveOne = coding !== undefined || (exchange.httpVersion === "2.0" && !["GET", "HEAD"].includes(exchange.method));
  return mayHaveOne ? { stream: exchange.bodyStream(), headers: { "transfer-encoding": "chunked" } } : { headers: {} };
}

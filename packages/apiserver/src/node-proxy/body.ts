import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

/** A request body to forward. */
interface ForwardedBody {
  /** undefined without a body. */
  readonly stream?: NodeJS.ReadableStream;
  /** Framing headers to add when the client's headers contain none. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The body with explicit framing, to prevent request smuggling: for methods that usually have no body (GET, DELETE), Node would
 * send it unframed, and the backend would parse it as the next request on our connection.
 */
export function forwardedBody(exchange: Exchange): ForwardedBody {
  const { "content-length": length, "transfer-encoding": coding } = exchange.headers;
  if (length !== undefined) return Number(length) === 0 ? { headers: {} } : { stream: exchange.bodyStream(), headers: {} };
  if (coding === undefined && exchange.bodyIsReceived && exchange.bodyBytes === 0) return { headers: {} };
  const mayHaveOne = coding !== undefined || (exchange.httpVersion === "2.0" && !["GET", "HEAD"].includes(exchange.method));
  return mayHaveOne ? { stream: exchange.bodyStream(), headers: { "transfer-encoding": "chunked" } } : { headers: {} };
}

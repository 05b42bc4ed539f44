import { messageOf } from "../objects/errors/message.ts";
import { goQuote } from "../objects/meta/go-quote.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Sends an error of a filter: plain text, not a Status.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go InternalError
 */
export function answerInternalError(exchange: Exchange, err: unknown): void {
  const text = `Internal Server Error: ${goQuote(exchange.url)}: ${messageOf(err)}`;
  const headers = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };
  exchange.respond(500, headers, `${escapeHtml(text)}\n`);
}

/** Escapes text between tags; quotes are not escaped, so the result is not safe in an attribute. */
export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

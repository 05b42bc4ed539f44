import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

/** Limit of the characters of all warnings of a response. */
const mostTogether = 4 * 1024;
/** Limit of each warning once that limit is exceeded. */
const mostEach = 256;

/**
 * The `Warning: 299 - "text"` headers of a response: each text once, in order. When their total exceeds the limit, all
 * warnings are truncated, including earlier ones; warnings that still exceed it are dropped.
 * Source: k8s.io/apiserver pkg/endpoints/filters/warning.go, k8s.io/apimachinery pkg/util/net/http.go NewWarningHeader
 */
export class Warnings {
  readonly #texts = new Set<string>();
  #written = 0;
  #cuts = false;

  /** Ignores repeated, empty and unprintable texts, and all texts once the headers are sent. */
  add(exchange: Exchange, text: string): void {
    if (text === "" || hasControl(text) || this.#texts.has(text) || exchange.headersSent) return;
    if (this.#cuts && this.#written >= mostTogether) return;
    this.#texts.add(text);
    const length = charactersOf(text).length;
    if (!this.#cuts && this.#written + length > mostTogether) this.#cuts = true;
    const shown = [...this.#texts].map((one) => (this.#cuts ? charactersOf(one).slice(0, mostEach).join("") : one));
    this.#written = shown.reduce((sum, one) => sum + charactersOf(one).length, 0);
    const [first = "", ...others] = shown.map(header);
    exchange.setHeader("warning", others.length === 0 ? first : [first, ...others]);
  }
}

function charactersOf(text: string): string[] {
  return [...text];
}

function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/** Node writes header values as latin1; this encodes the text as UTF-8. */
function header(text: string): string {
  const quoted = `299 - "${text.replace(/[\\"]/g, "\\$&")}"`;
  return Buffer.from(quoted, "utf8").toString("latin1");
}

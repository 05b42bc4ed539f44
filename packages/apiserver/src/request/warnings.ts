import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

/** What all warnings of an answer may take together, in characters. */
const mostTogether = 4 * 1024;
/** What each may take once they are more than that. */
const mostEach = 256;

/**
 * The `Warning: 299 - "text"` headers of an answer: each text once, in order. When they become too much, all of them are
 * cut, the ones that are there already too; what comes after the limit is reached all the same is dropped.
 * Source: k8s.io/apiserver pkg/endpoints/filters/warning.go, k8s.io/apimachinery pkg/util/net/http.go NewWarningHeader
 */
export class Warnings {
  readonly #texts = new Set<string>();
  #written = 0;
  #cuts = false;

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

/** Headers carry bytes; those of UTF-8, as everybody reads them. */
function header(text: string): string {
  const quoted = `299 - "${text.replace(/[\\"]/g, "\\$&")}"`;
  return Buffer.from(quoted, "utf8").toString("latin1");
}

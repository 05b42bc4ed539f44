/** Explanations from /debug/explain, requested a few at a time and cached. */
import type { Api } from "../api.ts";
import type { Row } from "./row.ts";

export interface ObjectName {
  readonly group: string;
  readonly resource: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Finding {
  readonly object: ObjectName;
  readonly by: string;
  readonly reason: string;
  readonly summary: string;
  readonly since?: string;
  readonly remedy?: string;
}

export interface Explanation {
  readonly object: ObjectName;
  readonly healthy: boolean;
  readonly cause?: Finding;
  readonly chain: readonly Finding[];
  readonly silent?: readonly string[];
}

export type Answer =
  | { readonly state: "asking" }
  | { readonly state: "answered"; readonly explanation: Explanation; readonly atMs: number; readonly row: Row }
  | { readonly state: "failed"; readonly message: string; readonly atMs: number; readonly row: Row };

/** Maximum age of an explanation whose object has not changed. */
const freshMs = 15_000;
/** Minimum age before a changed object is explained again. */
const leastMs = 1_500;
const mostAtOnce = 3;
const mostAnswers = 500;

const explainPath = (resource: string, namespace: string, name: string): string =>
  `/debug/explain/${namespace === "" ? "" : `namespaces/${encodeURIComponent(namespace)}/`}${resource}/${encodeURIComponent(name)}`;

export class Explanations {
  readonly #api: Api;
  readonly #answers = new Map<string, Answer>();
  readonly #waiting = new Map<string, Row>();
  readonly #asking = new Set<string>();
  readonly #changed: () => void;

  constructor(api: Api, changed: () => void) {
    this.#api = api;
    this.#changed = changed;
  }

  /** The last explanation; an outdated one is requested again in the background and returned until then. */
  of(row: Row): Answer {
    const known = this.#answers.get(row.uid);
    const now = Date.now();
    if (known !== undefined && (known.state === "asking" || now - known.atMs < (known.row === row ? freshMs : leastMs)))
      return known;
    if (!this.#waiting.has(row.uid) && !this.#asking.has(row.uid)) {
      this.#waiting.set(row.uid, row);
      queueMicrotask(() => this.#next());
    }
    return known ?? { state: "asking" };
  }

  #next(): void {
    for (const [uid, row] of this.#waiting) {
      if (this.#asking.size >= mostAtOnce) return;
      this.#waiting.delete(uid);
      this.#asking.add(uid);
      void this.#ask(row);
    }
  }

  async #ask(row: Row): Promise<void> {
    const keep = (answer: Answer): void => {
      this.#answers.delete(row.uid);
      this.#answers.set(row.uid, answer);
    };
    if (!this.#answers.has(row.uid)) keep({ state: "asking" });
    try {
      const explanation = await this.#api.get<Explanation>(explainPath(row.resource, row.namespace, row.name));
      keep({ state: "answered", explanation, atMs: Date.now(), row });
    } catch (err) {
      keep({ state: "failed", message: err instanceof Error ? err.message : String(err), atMs: Date.now(), row });
    }
    for (const uid of this.#answers.keys()) {
      if (this.#answers.size <= mostAnswers) break;
      this.#answers.delete(uid);
    }
    this.#asking.delete(row.uid);
    this.#changed();
    this.#next();
  }
}

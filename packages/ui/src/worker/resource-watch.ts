import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { type Api, ApiError, linesOf, pause } from "../api.ts";
import type { Kind } from "../model/kinds.ts";
import type { Source } from "../model/protocol.ts";
import type { Rows } from "./rows.ts";

/** Objects per page of a list, which is parsed at once: 500 pods are about 2 MB. */
const pageSize = 500;
const watchSeconds = 240;
const firstRetryMs = 500;
const longestRetryMs = 15_000;
/** Minimum time between two watches, for servers or proxies that end watches early. */
const shortestWatchMs = 1_000;
/** Interval of lists without a watch. */
const pollMs = 5_000;
/** Retry interval after a denial: the user's permissions or the served resources may have changed. */
const retryAfterMs = 60_000;

interface WatchOptions {
  readonly api: Api;
  readonly kind: Kind;
  readonly rows: Rows;
  /** Namespace to list when the user may not list all namespaces. */
  readonly namespace: string;
  /** False: the resource is polled. */
  readonly isWatched: boolean;
  readonly report: (source: Source) => void;
  /** Called when the server does not accept the credentials. */
  readonly refused: (message: string) => void;
}

interface List {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items: readonly KubeObject[];
}

interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject & { readonly code?: number; readonly message?: string };
}

/** Keeps the rows of one resource current: a list, then watches; another list when a watch cannot be resumed. */
export class ResourceWatch {
  readonly #options: WatchOptions;
  #isScoped = false;
  /** Version of the last event; `""`: a list is required. */
  #version = "";
  #failures = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { report } = this.#options;
    report({ state: "loading", message: "" });
    while (!signal.aborted) {
      try {
        if (this.#version === "") {
          await this.#list(signal);
          report({ state: "live", message: "" });
        }
        if (this.#options.isWatched) await this.#watch(signal);
        else {
          this.#version = "";
          await pause(pollMs, signal);
        }
      } catch (err) {
        if (signal.aborted) return;
        await this.#handle(err, signal);
      }
    }
  }

  async #handle(err: unknown, signal: AbortSignal): Promise<void> {
    const { report, refused, namespace, kind, rows } = this.#options;
    const code = err instanceof ApiError ? err.code : -1;
    const message = err instanceof Error ? err.message : String(err);
    if (code === 401) return refused(message);
    this.#version = code === 0 ? this.#version : "";
    if (code === 403 && !this.#isScoped && kind.namespaced && namespace !== "") {
      this.#isScoped = true;
      return;
    }
    if (code === 403 || code === 404) {
      rows.clear();
      this.#isScoped = false;
      report({ state: code === 403 ? "denied" : "absent", message });
      return pause(retryAfterMs, signal);
    }
    if (code === 410) return; // a new list is required
    report({ state: "away", message });
    const backoffMs = Math.min(longestRetryMs, firstRetryMs * 2 ** this.#failures++);
    await pause(backoffMs * (0.75 + Math.random() / 2), signal);
  }

  get #path(): string {
    const { kind, namespace } = this.#options;
    return this.#isScoped
      ? `${kind.api}/namespaces/${encodeURIComponent(namespace)}/${kind.plural}`
      : `${kind.api}/${kind.plural}`;
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { api, rows } = this.#options;
    rows.beginList();
    let next = "";
    do {
      const page: List = await api.get(`${this.#path}?limit=${pageSize}&continue=${encodeURIComponent(next)}`, signal);
      for (const item of page.items) rows.set(item);
      next = page.metadata.continue ?? "";
      this.#version = next === "" ? (page.metadata.resourceVersion ?? "") : "";
    } while (next !== "");
    rows.endList();
    this.#failures = 0;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${watchSeconds}&resourceVersion=${this.#version}`;
    const begunMs = performance.now();
    const response = await this.#options.api.open(`${this.#path}?${query}`, signal);
    this.#options.report({ state: "live", message: "" });
    try {
      for await (const lines of linesOf(response)) {
        // cast: each line of a watch of the API server is an event
        for (const line of lines) if (line !== "") this.#take(JSON.parse(line) as WatchEvent);
        this.#failures = 0;
      }
    } catch (err) {
      // An interrupted connection loses no events: the watch resumes after the last one.
      if (err instanceof ApiError || err instanceof SyntaxError) throw err;
      throw new ApiError(0, "the connection to the API server was lost");
    }
    if (performance.now() - begunMs < shortestWatchMs) await pause(shortestWatchMs, signal);
  }

  #take({ type, object }: WatchEvent): void {
    const { rows } = this.#options;
    if (type === "ERROR") throw new ApiError(object.code ?? 500, object.message ?? "the watch failed");
    this.#version = object.metadata.resourceVersion ?? this.#version;
    if (type === "DELETED") rows.remove(object);
    else if (type !== "BOOKMARK") rows.set(object);
  }
}

import { type Api, ApiError, linesOf, pause } from "../api.ts";
import { cutLine, mostLine } from "./ansi.ts";

const mostLines = 10_000;
/** Number of existing lines to request. */
const tail = 1_000;
/** Minimum time between two updates of the view. */
const drawMs = 100;
const againMs = 1_000;

interface LogOptions {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** The log of the container's previous instance. */
  readonly isPrevious: boolean;
  readonly changed: () => void;
}

/** Follows a container's log, starting with its last lines. */
export class LogStream {
  readonly #options: LogOptions;
  readonly #stop = new AbortController();
  #lines: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Text shown below the lines, such as the reason why the log ended. */
  end = "";

  constructor(options: LogOptions) {
    this.#options = options;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Reads until the log ends; an interrupted connection is opened again. */
  async run(api: Api): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#read(api);
        this.end = this.#options.isPrevious ? "" : "The log has ended.";
        break;
      } catch (err) {
        if (signal.aborted) return;
        this.end = err instanceof Error ? err.message : String(err);
        this.#changed();
        if (err instanceof ApiError && err.code !== 0) return;
        await pause(againMs, signal);
      }
    }
    this.#changed();
  }

  async #read(api: Api): Promise<void> {
    const { namespace, pod, container, isPrevious } = this.#options;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/log`;
    const more: Record<string, string> = isPrevious ? { previous: "true" } : { follow: "true" };
    const query = new URLSearchParams({ container, tailLines: String(tail), ...more });
    const response = await api.open(`${path}?${query}`, this.#stop.signal, "*/*");
    this.#lines = [];
    this.end = "";
    for await (const lines of linesOf(response, mostLine * 2)) this.#add(lines);
  }

  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  #add(lines: readonly string[]): void {
    // A new array for each update, so that views detect the change by identity.
    this.#lines = [...this.#lines, ...lines.map(cutLine)].slice(-mostLines);
    this.#changed();
  }

  #changed(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#options.changed();
    }, drawMs);
  }
}

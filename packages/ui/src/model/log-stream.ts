import { type Api, ApiError, linesOf, pause } from "../api.ts";
import { cutLine, mostLine } from "./ansi.ts";

const mostLines = 10_000;
/** What is there already is requested up to here. */
const tail = 1_000;
/** A container that logs fast is drawn so often at most. */
const drawMs = 100;
const againMs = 1_000;

interface LogOptions {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Of the container's run before the last restart. */
  readonly isPrevious: boolean;
  readonly changed: () => void;
}

/** The last lines of a container's log, and those that follow. */
export class LogStream {
  readonly #options: LogOptions;
  readonly #stop = new AbortController();
  #lines: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Text below the lines. */
  end = "";

  constructor(options: LogOptions) {
    this.#options = options;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Until the log ends; a connection that breaks off is made again. */
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
    // A new array each time: who has drawn the old one sees that it is another.
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

/**
 * Requests to the API server that served the page, authenticated by the user's token or by the connection (client certificate,
 * proxy).
 */

/** A failed request. `code` is the HTTP status; 0 without a response. */
export class ApiError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export class Api {
  /** `""`: no token; the connection or a proxy authenticates the user. */
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  /** @throws ApiError with the server's message, code 0 when it cannot be reached; the signal's reason */
  async open(path: string, signal?: AbortSignal, accept = "application/json"): Promise<Response> {
    const headers: Record<string, string> = { accept };
    if (this.#token !== "") headers["authorization"] = `Bearer ${this.#token}`;
    let response: Response;
    try {
      response = await fetch(path, { headers, signal: signal ?? null, cache: "no-store", credentials: "same-origin" });
    } catch {
      signal?.throwIfAborted();
      throw new ApiError(0, "the API server cannot be reached");
    }
    if (!response.ok) throw new ApiError(response.status, await messageOf(response));
    return response;
  }

  /** @throws as `open` */
  async get<T>(path: string, signal?: AbortSignal): Promise<T> {
    const response = await this.open(path, signal);
    try {
      return (await response.json()) as T; // cast: T names what the API server serves at the path
    } catch {
      signal?.throwIfAborted();
      throw new ApiError(0, "the response was interrupted");
    }
  }
}

const mostMessage = 500;

async function messageOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const { message }: { message?: unknown } = JSON.parse(text);
    if (typeof message === "string" && message !== "") return message.slice(0, mostMessage);
  } catch {
    // The response of a proxy is not a Status.
  }
  return text.slice(0, mostMessage) || `${response.status} ${response.statusText}`;
}

/** The lines of a response, each without its end. A line longer than `mostChars` is cut. */
export async function* linesOf(response: Response, mostChars = Number.POSITIVE_INFINITY): AsyncGenerator<string[]> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop()!;
      if (rest.length > mostChars) rest = rest.slice(0, mostChars);
      if (lines.length > 0) yield lines;
      if (done) break;
    }
    if (rest !== "") yield [rest];
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Ends early when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

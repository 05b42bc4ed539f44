import { type AnswerHandlers, type Http2Client, openHttp2 } from "./http2-client.ts";

/** A response; times are measured from handing the request to the connection. */
export interface Answer {
  readonly status: number;
  readonly firstByteMs: number;
  readonly totalMs: number;
  readonly bytes: number;
  /** Empty unless `keepBody` was set. */
  readonly body: Buffer;
}

export interface RequestOptions {
  readonly method?: string;
  readonly body?: string | Buffer;
  /** Lower-case names; pass the same object for equal headers, since its encoding is cached. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly keepBody?: boolean;
}

export interface Connection {
  /** @throws Error for status 400 and above, with the beginning of the body */
  request(path: string, options?: RequestOptions): Promise<Answer>;
  close(): void;
}

const requestTimeoutMs = 60_000;
const timeoutCheckMs = 5_000;
const noHeaders = {};
const noBody = Buffer.alloc(0);

/** An HTTP/2 connection with maximum windows, so that flow control does not affect the measurement. */
export async function openConnection(url: string, token: string, ca: Buffer | undefined): Promise<Connection> {
  const client = await openHttp2(url, token, ca);
  const underWay = new Set<Exchange>();
  // One timer for all requests: a timer per request would cost as much CPU time as its frames.
  const timer = setInterval(() => {
    const [oldest] = underWay;
    if (oldest === undefined || performance.now() - oldest.start < requestTimeoutMs) return;
    oldest.failed(new Error("not answered in 60 s"));
    client.close();
  }, timeoutCheckMs).unref();
  return {
    request: (path, options = {}) => exchange(client, underWay, path, options),
    close() {
      clearInterval(timer);
      client.close();
    },
  };
}

function exchange(client: Http2Client, underWay: Set<Exchange>, path: string, options: RequestOptions): Promise<Answer> {
  const { method = "GET", headers = noHeaders } = options;
  const body = typeof options.body === "string" ? Buffer.from(options.body) : options.body;
  return new Promise((resolve, reject) => {
    const one = new Exchange(method, path, options.keepBody === true, (err, answer) => {
      underWay.delete(one);
      if (answer === undefined) reject(err);
      else resolve(answer);
    });
    underWay.add(one);
    client.send({ method, path, headers, body }, one);
  });
}

class Exchange implements AnswerHandlers {
  readonly start = performance.now();
  readonly #method: string;
  readonly #path: string;
  readonly #keepBody: boolean;
  readonly #settle: (err: Error | undefined, answer?: Answer) => void;
  #status = 0;
  #firstByteMs = 0;
  #bytes = 0;
  #kept: Buffer[] | undefined;

  constructor(method: string, path: string, keepBody: boolean, settle: (err: Error | undefined, answer?: Answer) => void) {
    this.#method = method;
    this.#path = path;
    this.#keepBody = keepBody;
    this.#settle = settle;
  }

  begun(status: number): void {
    this.#status = status;
    if (this.#keepBody || status >= 400) this.#kept = [];
  }

  data(piece: Buffer): void {
    if (this.#bytes === 0) this.#firstByteMs = performance.now() - this.start;
    this.#bytes += piece.length;
    this.#kept?.push(Buffer.from(piece));
  }

  ended(): void {
    const body = this.#kept === undefined ? noBody : Buffer.concat(this.#kept);
    if (this.#status >= 400) {
      this.failed(new Error(`${this.#status} ${body.toString("utf8", 0, 300)}`));
      return;
    }
    const totalMs = performance.now() - this.start;
    this.#settle(undefined, { status: this.#status, firstByteMs: this.#firstByteMs, totalMs, bytes: this.#bytes, body });
  }

  failed(err: Error): void {
    this.#settle(new Error(`${this.#method} ${this.#path}: ${err.message}`));
  }
}

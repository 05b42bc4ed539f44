import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";

/** One answer, measured from the moment the request was handed to the connection. */
export interface Answer {
  readonly status: number;
  readonly firstByteMs: number;
  readonly totalMs: number;
  readonly bytes: number;
  /** Only when the request asked to keep it. */
  readonly body: Buffer;
}

export interface RequestOptions {
  readonly method?: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly keepBody?: boolean;
}

export interface Connection {
  /** @throws Error for any status from 400 on, with the beginning of the body */
  request(path: string, options?: RequestOptions): Promise<Answer>;
  /** A request whose body never ends; `onData` gets its pieces. */
  stream(path: string, onData: (chunk: Buffer) => void): Promise<{ close(): void }>;
  close(): void;
}

const requestTimeoutMs = 60_000;

/** One HTTP/2 connection with windows so large that flow control is no part of what is measured. */
export async function openConnection(url: string, token: string, ca: Buffer | undefined): Promise<Connection> {
  const session = connect(url, {
    ...(ca === undefined ? { rejectUnauthorized: false } : { ca }),
    settings: { initialWindowSize: 16 << 20 },
  });
  session.on("error", () => {});
  await once(session, "connect");
  session.setLocalWindowSize(1 << 30);
  const auth = { authorization: `Bearer ${token}` };
  return {
    request: (path, options = {}) => exchange(session, { ":path": path, ...auth }, options),
    stream: (path, onData) => follow(session.request({ ":path": path, ...auth }), onData),
    close: () => session.destroy(),
  };
}

function exchange(session: ClientHttp2Session, fixed: Record<string, string>, options: RequestOptions): Promise<Answer> {
  const { method = "GET", body, headers = {}, keepBody = false } = options;
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const stream = session.request({ ":method": method, ...fixed, ...headers });
    stream.setTimeout(requestTimeoutMs, () => stream.destroy(new Error(`no answer to ${method} ${fixed[":path"]} in 60 s`)));
    let status = 0;
    let firstByteMs = 0;
    let bytes = 0;
    const kept: Buffer[] = [];
    stream.on("response", (received) => {
      status = Number(received[":status"]);
    });
    stream.on("data", (chunk: Buffer) => {
      if (bytes === 0) firstByteMs = performance.now() - start;
      bytes += chunk.length;
      if (keepBody || status >= 400) kept.push(chunk);
    });
    stream.once("error", reject);
    stream.once("end", () => {
      const text = Buffer.concat(kept);
      if (status >= 400) reject(new Error(`${method} ${fixed[":path"]}: ${status} ${text.toString("utf8", 0, 300)}`));
      else resolve({ status, firstByteMs, totalMs: performance.now() - start, bytes, body: text });
    });
    stream.end(body);
  });
}

async function follow(stream: ClientHttp2Stream, onData: (chunk: Buffer) => void): Promise<{ close(): void }> {
  stream.on("error", () => {});
  stream.on("data", onData);
  const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
  if (headers[":status"] !== 200) throw new Error(`watch: ${headers[":status"]}`);
  return { close: () => stream.close() };
}

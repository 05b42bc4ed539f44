/** Shared by the tests of this module: one server per file, requests that keep the raw response, small objects. */
import { type ClientHttp2Session, connect } from "node:http2";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { startTestServer } from "../testing/start-test-server.ts";

export interface TestServer {
  /** Sends a request as the administrator; strings and buffers are sent unchanged, other bodies as JSON. */
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Opens a watch; `next` waits for the next line, `ended` resolves when the server ends it. */
  watch(path: string, headers?: Record<string, string>): Promise<Watch>;
  stop(): Promise<void>;
}

export interface Answer {
  readonly code: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly raw: Buffer;
  /** Parsed when the response is a single JSON document. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly body: any;
}

interface Watch {
  readonly code: number;
  // biome-ignore lint/suspicious/noExplicitAny: events hold objects of every shape.
  next(): Promise<any>;
  readonly ended: Promise<void>;
  close(): void;
}

/** Call in `before`, and `stop` in `after`. */
export async function startShared(flags: readonly string[] = []): Promise<TestServer> {
  const server = await startTestServer(undefined, ["--advertise-address=10.250.0.1", ...flags]);
  const session: ClientHttp2Session = connect(server.url, { ca: server.ca });
  session.on("error", () => {});
  const open = (method: string, path: string, body: Buffer | undefined, headers: Record<string, string>) => {
    const type = body === undefined || headers["content-type"] !== undefined ? {} : { "content-type": "application/json" };
    const stream = session.request(
      { ":method": method, ":path": path, authorization: `Bearer ${server.adminToken}`, ...type, ...headers },
      { endStream: body === undefined },
    );
    if (body !== undefined) stream.end(body);
    return stream;
  };
  return {
    async stop() {
      session.destroy();
      await server.stop();
    },
    request: (method, path, body, headers = {}) =>
      new Promise((resolve, reject) => {
        const stream = open(method, path, bytesOf(body), headers);
        stream.once("error", reject);
        stream.once("response", (received) => {
          const chunks: Buffer[] = [];
          stream.on("data", (chunk: Buffer) => chunks.push(chunk));
          stream.once("end", () => {
            const raw = Buffer.concat(chunks);
            const { ":status": code = 0, ...rest } = received;
            resolve({ code, headers: rest, raw, body: parsed(raw, rest) });
          });
        });
      }),
    watch: (path, headers = {}) =>
      new Promise((resolve, reject) => {
        const stream = open("GET", path, undefined, headers);
        stream.once("error", reject);
        stream.once("response", (received) => {
          const lines: string[] = [];
          let rest = "";
          let wake = (): void => {};
          let over = false;
          stream.on("data", (chunk: Buffer) => {
            const parts = (rest + chunk.toString()).split("\n");
            rest = parts.pop() as string;
            lines.push(...parts);
            wake();
          });
          const ended = new Promise<void>((finish) => {
            stream.once("close", () => {
              over = true;
              wake();
              finish();
            });
          });
          resolve({
            code: received[":status"] ?? 0,
            async next() {
              while (lines.length === 0) {
                if (over) throw new Error("the watch has ended");
                await new Promise<void>((ready) => {
                  wake = ready;
                });
              }
              return JSON.parse(lines.shift() as string);
            },
            ended,
            close: () => stream.close(),
          });
        });
      }),
  };
}

function bytesOf(body: unknown): Buffer | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body), "utf8");
}

function parsed(raw: Buffer, headers: Record<string, unknown>): unknown {
  if (!String(headers["content-type"]).startsWith("application/json") || headers["content-encoding"] !== undefined)
    return undefined;
  try {
    return JSON.parse(raw.toString());
  } catch {
    return undefined; // a watch response: one event per line
  }
}

export const configMaps = "/api/v1/namespaces/default/configmaps";

export function aConfigMap(name: string, data?: Record<string, string>, labels?: Record<string, string>): KubeObject {
  return {
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: { name, ...(labels && { labels }) },
    ...(data && { data }),
  };
}

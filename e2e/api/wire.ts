import { request } from "node:https";
import { type WatchEvent, WatchEventDecoder } from "@coxswain/apimachinery/objects/codec/stream";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { targetOfKubeconfig } from "../../tools/walk/src/client.ts";
import { send } from "../framework/api.ts";
import { settings } from "../framework/kubectl.ts";
import { waitFor } from "../framework/wait-for.ts";

/** Any object of the API; the tests know what they read from it. */
// biome-ignore lint/suspicious/noExplicitAny: the shape is what is being tested
export type Any = any;

const { ca, cert, key } = targetOfKubeconfig(kubeconfigFile(settings, "admin"));
const protobuf = "application/vnd.kubernetes.protobuf";

/** Sends a request with an object. @returns the code and the parsed response. */
export async function ask(
  method: string,
  path: string,
  object?: unknown,
  headers: Record<string, string> = {},
): Promise<{ code: number; body: Any; headers: Record<string, string | string[] | undefined> }> {
  const body = object === undefined ? undefined : JSON.stringify(object);
  // Node sends the body of a DELETE without Content-Length by default.
  const length: Record<string, string> = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const answer = await send(method, path, body, { ...length, ...headers });
  return { code: answer.code, body: answer.body, headers: answer.headers };
}

/** Sends a request that must succeed. @returns the object. */
export async function must(method: string, path: string, object?: unknown, headers: Record<string, string> = {}): Promise<Any> {
  const { code, body } = await ask(method, path, object, headers);
  if (code >= 300) throw new Error(`${method} ${path}: ${code} ${JSON.stringify(body)}`);
  return body;
}

export const merge = { "content-type": "application/merge-patch+json" };

/** Sends and receives protobuf as bytes. */
export function protobufRequest(
  method: string,
  path: string,
  body?: Buffer,
): Promise<{ code: number; type: string; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = { accept: protobuf, ...(body !== undefined && { "content-type": protobuf }) };
    const sent = request({ ...address(path), method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ code: response.statusCode ?? 0, type: String(response.headers["content-type"]), bytes: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

export interface Watching {
  readonly code: number;
  readonly type: string;
  /** All events received so far. */
  readonly events: Any[];
  /** True once the server has ended the watch. */
  readonly isEnded: boolean;
  /** Resolves when this many events have arrived. */
  count(events: number): Promise<Any[]>;
  stop(): void;
}

/** Opens a watch; resolves when the response headers have arrived. */
export function openWatch(path: string, accept = "application/json"): Promise<Watching> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...address(path), headers: { accept } }, (response) => {
      const events: WatchEvent[] = [];
      const type = String(response.headers["content-type"]);
      const decoder = new WatchEventDecoder(type);
      const watching = {
        ...{ code: response.statusCode ?? 0, type, events, isEnded: false },
        count: (wanted: number) =>
          waitFor(`${wanted} events of ${path}`, async () => events.length >= wanted && (events as Any[])),
        stop: () => void sent.destroy(),
      };
      response.on("data", (chunk: Buffer) => events.push(...decoder.push(chunk)));
      response.on("end", () => {
        watching.isEnded = true;
      });
      response.on("error", () => {});
      resolve(watching);
    });
    sent.on("error", reject);
    sent.end();
  });
}

const address = (path: string): object => ({ host: "127.0.0.1", port: settings.ports.apiserver, path, ca, cert, key });

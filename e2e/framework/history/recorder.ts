import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  everything,
  keyOf,
  type Read,
  type Recording,
  type Resource,
  type SeenEvent,
  type Selection,
  tagOf,
  type WatchSession,
  type Write,
} from "./records.ts";

/** A client that records requests and responses. Its methods never throw: errors are in the returned records. */
export interface RecordingClient {
  create(object: KubeObject): Promise<Write>;
  /** Conditional on the object's resourceVersion, if set. */
  update(object: KubeObject): Promise<Write>;
  /** @param query for an apply: `fieldManager=a&force=true` */
  patch(key: string, type: PatchType, body: unknown, query?: string): Promise<Write>;
  delete(key: string): Promise<Write>;
  get(key: string, revision?: number): Promise<Read>;
  list(prefix: string, options?: ListOptions): Promise<Read>;
  /** @param onEvent called immediately for each event; @returns when the watch has ended */
  watch(prefix: string, options: WatchOptions, onEvent?: (event: SeenEvent) => void): Promise<WatchSession>;
  close(): void;
}

export type PatchType = "json" | "merge" | "strategic-merge" | "apply";

export interface ListOptions {
  selection?: Selection;
  revision?: number;
  exact?: boolean;
  limit?: number;
  previous?: Read;
}

export interface WatchOptions {
  selection?: Selection;
  revision?: number;
  timeoutSeconds?: number;
  signal?: AbortSignal;
}

export interface RecordingClientOptions {
  name: string;
  /** `https://127.0.0.1:6443`; called for each request, so that a client can switch servers. */
  url: () => string;
  ca: string;
  token: string;
  resource: Resource;
  recording: Recording;
  timeoutMs?: number;
}

export const newRecording = (): Recording => ({ writes: [], reads: [], watches: [] });

const mediaTypes: Readonly<Record<PatchType, string>> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  "strategic-merge": "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
};

/** A client that appends all its requests to the recording of the options. */
export const newRecordingClient = (options: RecordingClientOptions): RecordingClient => new HttpsRecordingClient(options);

class HttpsRecordingClient implements RecordingClient {
  readonly #options: RecordingClientOptions;
  readonly #agent: Agent;
  readonly #timeoutMs: number;

  constructor(options: RecordingClientOptions) {
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, ca: options.ca });
    this.#timeoutMs = options.timeoutMs ?? 15_000;
  }

  create(object: KubeObject): Promise<Write> {
    const key = keyOf(object);
    const path = this.#pathOf(`${object.metadata.namespace}/`);
    return this.#write({ verb: "create", key, tag: tagOf(object), basedOn: undefined }, () => this.#ask("POST", path, object));
  }

  update(object: KubeObject): Promise<Write> {
    const key = keyOf(object);
    const basedOn = object.metadata.resourceVersion ? Number(object.metadata.resourceVersion) : undefined;
    const send = () => this.#ask("PUT", this.#pathOf(key), object);
    return this.#write({ verb: "update", key, tag: tagOf(object), basedOn }, send);
  }

  patch(key: string, type: PatchType, body: unknown, query = ""): Promise<Write> {
    const { tag, basedOn } = type === "json" ? ofJsonPatch(body as JsonPatch) : ofMergePatch(body as KubeObject);
    const path = `${this.#pathOf(key)}?${query}`;
    const send = () => this.#ask("PATCH", path, body, mediaTypes[type]);
    return this.#write({ verb: type === "apply" ? "apply" : "patch", key, tag, basedOn }, send);
  }

  delete(key: string): Promise<Write> {
    const send = () => this.#ask("DELETE", this.#pathOf(key));
    return this.#write({ verb: "delete", key, tag: undefined, basedOn: undefined }, send);
  }

  get(key: string, revision?: number): Promise<Read> {
    const request = { prefix: key, selection: everything, revision, exact: false, limit: undefined, previous: undefined };
    return this.#read(request, this.#pathOf(key) + queryOf([resourceVersion(revision)]));
  }

  list(prefix: string, { selection = everything, revision, exact = false, limit, previous }: ListOptions = {}): Promise<Read> {
    const query = queryOf([
      selection.query,
      resourceVersion(revision),
      revision ? `resourceVersionMatch=${exact ? "Exact" : "NotOlderThan"}` : "",
      limit === undefined ? "" : `limit=${limit}`,
      previous?.continueToken === undefined ? "" : `continue=${encodeURIComponent(previous.continueToken)}`,
    ]);
    return this.#read({ prefix, selection, revision, exact, limit, previous }, this.#pathOf(prefix) + query);
  }

  async watch(
    prefix: string,
    { selection = everything, revision, timeoutSeconds, signal }: WatchOptions,
    onEvent?: (event: SeenEvent) => void,
  ): Promise<WatchSession> {
    const record: WatchSession = {
      ...{ ...this.#origin(), prefix, selection, revision, events: [] },
      ...{ start: performance.now(), end: undefined, code: undefined },
    };
    this.#options.recording.watches.push(record);
    const query = queryOf([
      "watch=true&allowWatchBookmarks=true",
      selection.query,
      resourceVersion(revision),
      timeoutSeconds === undefined ? "" : `timeoutSeconds=${timeoutSeconds}`,
    ]);
    const sent = this.#open("GET", this.#pathOf(prefix) + query);
    const stop = (): void => void sent.destroy();
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    // A stopped (SIGSTOP) server keeps the connection open without responding.
    const timer = timeoutSeconds === undefined ? undefined : setTimeout(stop, timeoutSeconds * 1000 + this.#timeoutMs);
    try {
      const response = await responseOf(sent);
      record.code = response.statusCode;
      for await (const line of linesOf(response)) {
        const parsed = JSON.parse(line) as Pick<SeenEvent, "type" | "object">;
        if (record.code !== 200) continue;
        const event: SeenEvent = { at: performance.now(), ...parsed };
        record.events.push(event);
        onEvent?.(event);
      }
    } catch {
      // Interrupted; the events so far are recorded.
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      record.end = performance.now();
    }
    return record;
  }

  close(): void {
    this.#agent.destroy();
  }

  #origin(): { client: string; folder: string } {
    return { client: this.#options.name, folder: this.#options.resource.folder };
  }

  #pathOf(prefix: string): string {
    const { root, plural } = this.#options.resource;
    if (prefix === "") return `${root}/${plural}`;
    const [namespace, name] = prefix.split("/");
    return `${root}/namespaces/${namespace}/${plural}${name ? `/${name}` : ""}`;
  }

  #open(method: string, path: string, body?: unknown, contentType = "application/json"): ClientRequest {
    const { url, token } = this.#options;
    const sent = request(url() + path, {
      method,
      agent: this.#agent,
      headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { "content-type": contentType }) },
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    return sent;
  }

  async #ask(method: string, path: string, body?: unknown, contentType?: string): Promise<Answer | undefined> {
    const sent = this.#open(method, path, body, contentType);
    const timer = setTimeout(() => sent.destroy(new Error("no answer in time")), this.#timeoutMs);
    try {
      const response = await responseOf(sent);
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      return { code: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) };
    } catch {
      return undefined; // unknown outcome: only etcd's history shows it
    } finally {
      clearTimeout(timer);
    }
  }

  async #write(
    request: Pick<Write, "verb" | "key" | "tag" | "basedOn">,
    send: () => Promise<Answer | undefined>,
  ): Promise<Write> {
    const record: Write = {
      ...{ ...this.#origin(), ...request, start: performance.now(), end: undefined },
      ...{ code: undefined, answer: undefined },
    };
    this.#options.recording.writes.push(record);
    const answer = await send();
    if (answer === undefined) return record;
    return Object.assign(record, { end: performance.now(), code: answer.code, answer: answer.body });
  }

  async #read(
    request: Pick<Read, "prefix" | "selection" | "revision" | "exact" | "limit" | "previous">,
    path: string,
  ): Promise<Read> {
    const record: Read = {
      ...{ ...this.#origin(), ...request, start: performance.now(), end: undefined, code: undefined },
      ...{ listRevision: undefined, items: [], continueToken: undefined },
    };
    this.#options.recording.reads.push(record);
    const answer = await this.#ask("GET", path);
    if (answer === undefined) return record;
    const { code, body } = answer;
    Object.assign(record, { end: performance.now(), code });
    if (code === 200 && body.items === undefined) record.items = [body];
    if (body.items !== undefined) {
      record.items = body.items;
      record.listRevision = Number(body.metadata.resourceVersion);
    }
    // A 410 response contains a new continue token.
    record.continueToken = (body.metadata as { continue?: string }).continue || undefined;
    return record;
  }
}

const resourceVersion = (revision: number | undefined): string => (revision === undefined ? "" : `resourceVersion=${revision}`);

/** `?` and the parameters that are not empty. */
const queryOf = (parameters: readonly string[]): string => `?${parameters.filter(Boolean).join("&")}`;

interface Answer {
  code: number;
  body: KubeObject & { items?: KubeObject[] };
}

type JsonPatch = readonly { op: string; path: string; value?: unknown }[];

/** A JSON patch states the version it is based on with a test operation. */
function ofJsonPatch(patch: JsonPatch): { tag: string | undefined; basedOn: number | undefined } {
  const tested = patch.find(({ op, path }) => op === "test" && path === "/metadata/resourceVersion")?.value;
  const tag = patch.find(({ path }) => path === "/data/tag")?.value as string | undefined;
  return { tag, basedOn: tested === undefined ? undefined : Number(tested) };
}

function ofMergePatch(patch: KubeObject): { tag: string | undefined; basedOn: number | undefined } {
  const condition = patch.metadata?.resourceVersion;
  return { tag: tagOf(patch), basedOn: condition === undefined ? undefined : Number(condition) };
}

function responseOf(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once("response", resolve);
    sent.on("error", reject);
  });
}

/** Complete lines only; an incomplete last line of a broken connection is dropped. */
export async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() as string;
    yield* lines.filter((line) => line !== "");
  }
}

/** Tools of a case: connections that are closed after the attack, requests that are counted, servers that stop with the case. */
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import type { KubeList } from "@coxswain/apimachinery/objects/meta/types";
import { connectRaw } from "@coxswain/apimachinery/transport/http2/testing/raw-client";
import { waitFor } from "../framework/wait-for.ts";
import { startBackend } from "./backend.ts";
import type { Attack, Case, RequestOptions, UserName } from "./case.ts";

/** Parameters of the server for the attacker's process. */
export interface Target {
  readonly port: number;
  readonly ca: string;
  /** Bearer tokens. */
  readonly tokens: Readonly<Record<Exclude<UserName, "anonymous">, string>> & { readonly admin: string };
  /** Certificate of the backends. */
  readonly pair: { readonly cert: string; readonly key: string };
}

export interface RunningCase {
  setup(): Promise<void>;
  /** @returns the number of outcomes by status and error */
  run(ms: number): Promise<Record<string, number>>;
  cleanup(): Promise<void>;
}

/** A case against the target, with clients and connections of its own. */
export function newRunningCase(target: Target, hostile: Case): RunningCase {
  const attack = new CountedAttack(target, hostile.user);
  return {
    async setup() {
      await hostile.setup?.(attack);
      attack.resetCounts();
    },
    async run(ms) {
      const run = hostile.run(attack);
      run.catch((err: unknown) => attack.count(nameOf(err)));
      await attack.endAfter(ms);
      return attack.counts();
    },
    async cleanup() {
      await hostile.cleanup?.(attack);
      await attack.close();
    },
  };
}

class CountedAttack implements Attack {
  readonly port: number;
  readonly ca: string;
  readonly signal: AbortSignal;
  readonly over: Promise<void>;
  readonly admin: Client;
  readonly auth: Attack["auth"];
  readonly #pair: Target["pair"];
  readonly #client: Client;
  readonly #end = new AbortController();
  readonly #counts = new Map<string, number>();
  readonly #sockets = new Set<Socket>();
  readonly #closing: (() => Promise<void>)[] = [];

  constructor({ port, ca, tokens, pair }: Target, user: UserName) {
    this.port = port;
    this.ca = ca;
    this.#pair = pair;
    this.signal = this.#end.signal;
    this.over = new Promise((resolve) => this.signal.addEventListener("abort", () => resolve()));
    const open = (token: string | undefined): Client =>
      newClient({ host: `https://127.0.0.1:${port}`, ca, qps: -1, ...(token === undefined ? {} : { token }) });
    const token = user === "anonymous" ? undefined : tokens[user];
    this.auth = token === undefined ? [] : [["authorization", `Bearer ${token}`]];
    this.#client = open(token);
    this.admin = open(tokens.admin);
  }

  readonly count = (what: string): void => {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  };

  counts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  resetCounts(): void {
    this.#counts.clear();
  }

  async request(method: string, path: string, options?: RequestOptions): Promise<{ status: number; body: Buffer }> {
    const { status, body } = await this.#client.raw(method, path, { ...wireOf(options), signal: this.signal });
    this.count(String(status));
    return { status, body };
  }

  async prepare(method: string, path: string, options?: RequestOptions): Promise<Buffer> {
    const { status, body } = await this.admin.raw(method, path, wireOf(options));
    if (status >= 400) throw new Error(`${method} ${path}: ${status} ${body.toString("utf8", 0, 500)}`);
    return body;
  }

  async removeAll(path: string): Promise<void> {
    let next = "";
    do {
      // A request has a minute, in which a busy server does not delete thousands of objects.
      const page = await this.prepare("DELETE", `${path}?limit=200&continue=${encodeURIComponent(next)}`);
      next = listIn(page).metadata.continue ?? "";
    } while (next !== "");
    const isEmpty = async (): Promise<boolean> => listIn(await this.prepare("GET", `${path}?limit=1`)).items.length === 0;
    await waitFor(`${path} to be empty`, isEmpty, { timeoutMs: 10 * 60_000 });
  }

  async http2(options: Parameters<Attack["http2"]>[0] = {}): ReturnType<Attack["http2"]> {
    const raw = await connectRaw({ port: this.port, ca: this.ca, ...options });
    this.#keep(raw.socket);
    return raw;
  }

  async tls(protocol = "http/1.1"): Promise<TLSSocket> {
    const socket = connectTls({ host: "127.0.0.1", port: this.port, ca: this.ca, ALPNProtocols: [protocol] });
    this.#keep(socket);
    await once(socket, "secureConnect");
    return socket;
  }

  async tcp(): Promise<Socket> {
    const socket = connectTcp({ host: "127.0.0.1", port: this.port });
    this.#keep(socket);
    await once(socket, "connect");
    return socket;
  }

  async repeat(lanes: number, work: (lane: number, round: number) => Promise<unknown>): Promise<void> {
    const one = (lane: number) => repeatUntil(this.signal, (round) => work(lane, round), this.count);
    await Promise.all(Array.from({ length: lanes }, (_, lane) => one(lane)));
  }

  async backend(handler: Parameters<Attack["backend"]>[0]): ReturnType<Attack["backend"]> {
    const backend = await startBackend(this.#pair, handler);
    this.#closing.push(backend.close);
    return backend;
  }

  /** Ends the attack after `ms`, with its client and connections. */
  async endAfter(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#end.abort(), ms);
    await this.over;
    clearTimeout(timer);
    this.#client.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.admin.close();
    this.#client.close();
    await Promise.all(this.#closing.map((close) => close()));
  }

  /** Destroys the socket at the end of the attack, at once if that is over. */
  #keep(socket: Socket): void {
    if (this.signal.aborted) socket.destroy();
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

function listIn(body: Buffer): KubeList {
  return JSON.parse(body.toString()) as KubeList;
}

async function repeatUntil(
  signal: AbortSignal,
  work: (round: number) => Promise<unknown>,
  count: (what: string) => void,
): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    try {
      await work(round);
    } catch (err) {
      if (!signal.aborted) count(nameOf(err));
    }
    // Otherwise a lane that never waits would block the event loop, and the attacker would not notice the end of the attack.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const nameOf = (err: unknown): string => String((err as { code?: string }).code ?? (err as Error).message).slice(0, 40);

function wireOf({ body, type = "application/json", headers = {} }: RequestOptions = {}): {
  headers: Record<string, string>;
  body?: Buffer | string;
} {
  if (body === undefined) return { headers: { ...headers } };
  const isWire = typeof body === "string" || Buffer.isBuffer(body);
  return { headers: { "content-type": type, ...headers }, body: isWire ? body : JSON.stringify(body) };
}

/** Tools of a case: connections that are closed after the attack, requests that are counted, servers that stop with the case. */
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { connectRaw } from "@coxswain/apimachinery/transport/http2/testing/raw-client";
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

export function newRunningCase(target: Target, hostile: Case): RunningCase {
  const { port, ca, tokens } = target;
  const counts: Record<string, number> = {};
  const count = (what: string): void => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
  const end = new AbortController();
  const over = new Promise<void>((resolve) => end.signal.addEventListener("abort", () => resolve()));
  const sockets = new Set<Socket>();
  const keep = <T extends Socket>(socket: T): T => {
    if (end.signal.aborted) socket.destroy();
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    return socket;
  };
  const open = (token: string | undefined): Client =>
    newClient({ host: `https://127.0.0.1:${port}`, ca, qps: -1, ...(token === undefined ? {} : { token }) });
  const token = hostile.user === "anonymous" ? undefined : tokens[hostile.user];
  const [client, admin] = [open(token), open(tokens.admin)];
  const closing: (() => Promise<void>)[] = [];

  const attack: Attack = {
    port,
    ca,
    signal: end.signal,
    over,
    admin,
    auth: token === undefined ? [] : [["authorization", `Bearer ${token}`]],
    count,
    async request(method, path, options) {
      const { status, body } = await client.raw(method, path, { ...wireOf(options), signal: end.signal });
      count(String(status));
      return { status, body };
    },
    async prepare(method, path, options) {
      const { status, body } = await admin.raw(method, path, wireOf(options));
      if (status >= 400) throw new Error(`${method} ${path}: ${status} ${body.toString("utf8", 0, 500)}`);
      return body;
    },
    async http2(options = {}) {
      const raw = await connectRaw({ port, ca, ...options });
      keep(raw.socket);
      return raw;
    },
    async tls(protocol = "http/1.1") {
      const socket = keep(connectTls({ host: "127.0.0.1", port, ca, ALPNProtocols: [protocol] }));
      await once(socket, "secureConnect");
      return socket;
    },
    async tcp() {
      const socket = keep(connectTcp({ host: "127.0.0.1", port }));
      await once(socket, "connect");
      return socket;
    },
    async repeat(lanes, work) {
      await Promise.all(Array.from({ length: lanes }, (_, lane) => repeatUntil(end.signal, (round) => work(lane, round), count)));
    },
    async backend(handler) {
      const backend = await startBackend(target.pair, handler);
      closing.push(backend.close);
      return backend;
    },
  };

  return {
    async setup() {
      await hostile.setup?.(attack);
      for (const key of Object.keys(counts)) delete counts[key];
    },
    async run(ms) {
      const timer = setTimeout(() => end.abort(), ms);
      const run = hostile.run(attack);
      run.catch((err: unknown) => count(nameOf(err)));
      await over;
      clearTimeout(timer);
      client.close();
      for (const socket of sockets) socket.destroy();
      return { ...counts };
    },
    async cleanup() {
      await hostile.cleanup?.(attack);
      admin.close();
      client.close();
      await Promise.all(closing.map((close) => close()));
    },
  };
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

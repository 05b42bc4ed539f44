import { randomInt } from "node:crypto";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { queryUpstream } from "./exchange-upstream.ts";
import { type WalkedMessage, walkResponse } from "./message-walk.ts";
import type { DnsMetrics } from "./metrics.ts";
import { checkingDisabled, flags, headerBytes, rcodes } from "./protocol.ts";
import type { Query } from "./query.ts";
import { newRelayCache, type Relayed } from "./relay-cache.ts";
import { optBytes, writeOpt } from "./reply.ts";
import type { Upstream } from "./resolv-conf.ts";

export interface ForwarderOptions {
  /** The servers to forward to, in order of preference. */
  readonly upstreams: () => Promise<readonly Upstream[]>;
  readonly clock: Clock;
  readonly metrics: DnsMetrics;
  /** Cancels what runs. */
  readonly signal: AbortSignal;
  /** Default 1.5 s per server, 4.5 s together: resolvers of C libraries give up after 5. */
  readonly attemptMs?: number;
  readonly totalMs?: number;
}

export type { Relayed } from "./relay-cache.ts";

/** Why a query was not forwarded, or got no answer. */
export class ForwardError extends Error {
  readonly rcode: number;
  constructor(rcode: number, message: string) {
    super(message);
    this.rcode = rcode;
  }
}

export interface Forwarder {
  /**
   * An answer of another server, from the cache or new. Concurrent queries for the same name are sent once.
   * @param client limits what one client may have open; absent for the server's own questions
   * @throws ForwardError
   */
  forward(query: Query, client?: string): Promise<Relayed> | Relayed;
  /** Number of questions under way. */
  readonly open: number;
  /** Number of clients that wait for answers. */
  readonly openClients: number;
}

/** Source: CoreDNS' plugin forward, max_concurrent in the Corefile of kubeadm */
const mostOpen = 1000;
const mostOpenPerClient = 100;
/** How long a server that did not answer is tried last. */
const avoidMs = 10_000;

export const newForwarder = (options: ForwarderOptions): Forwarder => new CachingForwarder(options);

class CachingForwarder implements Forwarder {
  readonly #options: ForwarderOptions;
  readonly #attemptMs: number;
  readonly #totalMs: number;
  readonly #cache: ReturnType<typeof newRelayCache>;
  readonly #running = new Map<string, Promise<Relayed>>();
  readonly #openOf = new Map<string, number>();
  readonly #avoidUntil = new Map<string, number>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#attemptMs = options.attemptMs ?? 1_500;
    this.#totalMs = options.totalMs ?? 4_500;
    this.#cache = newRelayCache(options.clock);
  }

  #inOrder(all: readonly Upstream[]): readonly Upstream[] {
    const now = this.#options.clock.monotonic();
    return all.toSorted(
      (a, b) => Number((this.#avoidUntil.get(a.address) ?? 0) > now) - Number((this.#avoidUntil.get(b.address) ?? 0) > now),
    );
  }

  async #attempt(upstream: Upstream, query: Query, timeoutMs: number): Promise<Relayed> {
    const { clock, signal } = this.#options;
    const request = requestOf(query);
    const started = this.#options.clock.monotonic();
    let walked: WalkedMessage | undefined;
    const isAnswer = (message: Buffer): boolean => {
      walked = walkResponse(message);
      return walked !== undefined && walked.id === request.readUInt16BE(0) && isAnswerTo(query, walked);
    };
    const message = await queryUpstream({ upstream, request, isAnswer, timeoutMs, clock, signal });
    const { records, bits } = walked!;
    const rcode = bits & 15;
    this.#options.metrics.forwarded(upstream.address, rcode, (this.#options.clock.monotonic() - started) / 1000);
    message.writeUInt16BE(0, 10); // the additional section is cut off
    return { message: message.subarray(0, records.at(-1)?.end ?? headerBytes + query.question.length), records, rcode };
  }

  async #query(query: Query): Promise<Relayed> {
    const upstreams = this.#inOrder(await this.#options.upstreams());
    if (upstreams.length === 0) throw new ForwardError(rcodes.servFail, "there is no upstream name server");
    const deadline = this.#options.clock.monotonic() + this.#totalMs;
    let last: Relayed | undefined;
    let cause: unknown;
    for (let i = 0; i < upstreams.length * 2; i++) {
      const leftMs = deadline - this.#options.clock.monotonic();
      if (leftMs <= 0 || this.#options.signal.aborted) break;
      const upstream = upstreams[i % upstreams.length]!;
      try {
        const answer = await this.#attempt(upstream, query, Math.min(this.#attemptMs, leftMs));
        this.#avoidUntil.delete(upstream.address);
        // Another server may be able to answer.
        if (answer.rcode === rcodes.servFail || answer.rcode === rcodes.refused) last = answer;
        else return answer;
        if (i + 1 >= upstreams.length) break;
      } catch (err) {
        cause = err;
        this.#options.metrics.forwardFailed(upstream.address);
        this.#avoidUntil.set(upstream.address, this.#options.clock.monotonic() + avoidMs);
      }
    }
    if (last !== undefined) return last;
    throw new ForwardError(rcodes.servFail, `no name server answered: ${String(messageOf(cause) ?? "time is over")}`);
  }

  async #start(key: string, query: Query): Promise<Relayed> {
    try {
      const answer = await this.#query(query);
      this.#cache.put(key, answer);
      return answer;
    } finally {
      this.#running.delete(key);
    }
  }

  async #counted(client: string, answer: Promise<Relayed>): Promise<Relayed> {
    this.#openOf.set(client, (this.#openOf.get(client) ?? 0) + 1);
    try {
      return await answer;
    } finally {
      const left = (this.#openOf.get(client) ?? 1) - 1;
      if (left > 0) this.#openOf.set(client, left);
      else this.#openOf.delete(client);
    }
  }

  get open(): number {
    return this.#running.size;
  }

  get openClients(): number {
    return this.#openOf.size;
  }

  forward(query: Query, client?: string): Promise<Relayed> | Relayed {
    const key = keyOf(query);
    const known = this.#cache.get(key);
    this.#options.metrics.cached(known !== undefined);
    if (known !== undefined) return known;
    if (client !== undefined && (this.#openOf.get(client) ?? 0) >= mostOpenPerClient) {
      return Promise.reject(new ForwardError(rcodes.refused, "this client has too many queries under way"));
    }
    let answer = this.#running.get(key);
    if (answer === undefined) {
      if (this.#running.size >= mostOpen) {
        this.#options.metrics.rejected();
        return Promise.reject(new ForwardError(rcodes.refused, "too many queries are under way"));
      }
      answer = this.#start(key, query);
      this.#running.set(key, answer);
      answer.catch(() => {}); // the requesters see it
    }
    return client === undefined ? answer : this.#counted(client, answer);
  }
}

/** Queries with the same key have the same answer. */
function keyOf({ name, type, class: of, checkingDisabled, edns }: Query): string {
  return `${type} ${of} ${checkingDisabled ? 1 : 0}${edns?.dnssecOk === true ? 1 : 0} ${name}`;
}

function requestOf(query: Query): Buffer {
  const end = headerBytes + query.question.length;
  const request = Buffer.alloc(end + optBytes);
  request.writeUInt16BE(randomInt(65_536), 0);
  request.writeUInt16BE(flags.recursionDesired | (query.checkingDisabled ? checkingDisabled : 0), 2);
  request.writeUInt16BE(1, 4);
  request.writeUInt16BE(1, 10);
  query.question.copy(request, headerBytes);
  writeOpt(request, end, query, 0);
  return request;
}

function isAnswerTo({ question }: Query, { bits, question: repeated }: WalkedMessage): boolean {
  return (bits & flags.response) !== 0 && repeated.toString("latin1").toLowerCase() === question.toString("latin1").toLowerCase();
}

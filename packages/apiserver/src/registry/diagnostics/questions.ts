/**
 * Questions to the daemons of the cluster about their decisions, exchanged through etcd. Any API server may write a question; each
 * server forwards it to the daemons connected to it and stores their answers. When idle, this costs one watch of the storage.
 */
import { randomUUID } from "node:crypto";
import { withinLimit } from "@coxswain/apimachinery/decisions/answer-questions";
import type { Decision, ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Storage } from "../../storage/storage.ts";
import { type StoredAnswer, type StoredQuestion, storedTtlSeconds } from "./stored.ts";

interface QuestionsOptions {
  /** Storages of `storedQuestions` and `storedAnswers`. */
  readonly questions: Storage;
  readonly answers: Storage;
  /** Decisions of this server, with which it answers the questions of other servers. */
  readonly decisions: DecisionLog;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Called for each question to one recipient. */
type Listener = (id: string, refs: readonly ObjectRef[]) => void;

export interface Recipient {
  readonly refs: readonly ObjectRef[];
  /** True when the recipient is probably running. The answers of others are awaited for a shorter time. */
  readonly expected: boolean;
  /** Number of answers to wait for; default 1. More only for the other API servers, which share one recipient name. */
  readonly answers?: number;
}

interface Answers {
  readonly decisions: readonly Decision[];
  /** The expected recipients that did not answer. */
  readonly silent: readonly string[];
}

/** Recipient name that addresses the other API servers. */
export const apiserverRecipient = "kube-apiserver";

const timeoutMs = 1_000;
const shortTimeoutMs = 250;
const mostAtOnce = 32;
const retryMs = 1_000;

export class Questions {
  readonly #options: QuestionsOptions;
  readonly #serverId = randomUUID();
  /** Questions that have not expired, by id. */
  readonly #live = new Map<string, StoredQuestion>();
  readonly #listeners = new Map<string, Set<Listener>>();
  #open = 0;

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** Follows the questions of all servers until `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { questions, clock, log } = this.#options;
    while (!signal.aborted) {
      try {
        this.#live.clear();
        const stream = await questions.watch({ prefix: "", revision: 0, signal });
        for await (const event of stream) {
          if (event.type === "ERROR") throw event.error;
          if (event.type === "BOOKMARK") continue;
          const id = event.entry.key;
          if (event.type === "DELETED") this.#live.delete(id);
          else this.#heard(id, event.entry.object<StoredQuestion>());
        }
      } catch (err) {
        if (!signal.aborted) log.v(2)?.info("cannot watch the requests for diagnostics", { error: String(err) });
      }
      await clock.sleep(retryMs, signal).catch(() => {});
    }
  }

  after(delayMs: number, fire: () => void): Timer {
    return this.#options.clock.after(delayMs, fire);
  }

  /**
   * Calls `listener` for each question to the recipient, beginning with those that have not expired.
   * @returns a function that stops it
   */
  listen(recipient: string, listener: Listener): () => void {
    const listeners = this.#listeners.getOrInsertComputed(recipient, () => new Set());
    listeners.add(listener);
    for (const [id, question] of this.#live) {
      const requested = question.requested.find((one) => one.recipient === recipient);
      if (requested !== undefined) listener(id, requested.refs);
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(recipient);
    };
  }

  /** @returns the objects of the recipient's question; undefined when the question has expired, or was not for this recipient */
  requestedRefs(id: string, recipient: string): readonly ObjectRef[] | undefined {
    return this.#live.get(id)?.requested.find((one) => one.recipient === recipient)?.refs;
  }

  /** A second answer of the same recipient changes nothing. */
  async answer(id: string, recipient: string, decisions: readonly Decision[]): Promise<void> {
    const answer: StoredAnswer = { metadata: { namespace: id, name: recipient }, decisions };
    try {
      await this.#options.answers.create(`${id}/${recipient}`, answer, { ttlSeconds: storedTtlSeconds });
    } catch (err) {
      if (!isAlreadyExists(err)) throw err;
    }
  }

  /**
   * Writes the questions and waits for the answers: at most a second for those expected, 250 ms for others.
   * @throws the signal's reason, errors of the storage
   */
  async query(requested: ReadonlyMap<string, Recipient>, signal: AbortSignal): Promise<Answers> {
    const expected = [...requested].filter(([, { expected }]) => expected).map(([recipient]) => recipient);
    if (requested.size === 0 || this.#open >= mostAtOnce) return { decisions: [], silent: expected };
    const { questions, answers, clock } = this.#options;
    const id = randomUUID();
    const missing = new Map(Array.from(requested, ([recipient, { answers = 1 }]) => [recipient, answers]));
    const decisions: Decision[] = [];
    const enough = new AbortController();
    const onAbort = (): void => enough.abort();
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    let patient = true;
    const endWhenDone = (): void => {
      if (missing.size === 0 || (!patient && expected.every((recipient) => !missing.has(recipient)))) enough.abort();
    };
    const timers = [
      clock.after(timeoutMs, () => enough.abort()),
      clock.after(shortTimeoutMs, () => {
        patient = false;
        endWhenDone();
      }),
    ];
    this.#open++;
    try {
      const stream = await answers.watch({ prefix: `${id}/`, revision: 0, signal: enough.signal });
      const question: StoredQuestion = {
        metadata: { name: id },
        by: this.#serverId,
        requested: Array.from(requested, ([recipient, { refs }]) => ({ recipient, refs })),
      };
      await questions.create(id, question, { ttlSeconds: storedTtlSeconds, signal });
      for await (const event of stream) {
        if (event.type === "ERROR") throw event.error;
        if (event.type !== "ADDED") continue;
        const answer = event.entry.object<StoredAnswer>();
        decisions.push(...answer.decisions);
        const recipient = recipientOf(answer);
        const left = (missing.get(recipient) ?? 1) - 1;
        if (left > 0) missing.set(recipient, left);
        else missing.delete(recipient);
        endWhenDone();
      }
    } catch (err) {
      if (!enough.signal.aborted) throw err;
    } finally {
      this.#open--;
      for (const timer of timers) timer.cancel();
      signal.removeEventListener("abort", onAbort);
      enough.abort();
    }
    signal.throwIfAborted();
    return { decisions, silent: expected.filter((recipient) => missing.has(recipient)) };
  }

  #heard(id: string, question: StoredQuestion): void {
    this.#live.set(id, question);
    for (const { recipient, refs } of question.requested) {
      if (recipient === apiserverRecipient && question.by !== this.#serverId) this.#answerMyself(id, refs);
      for (const listener of this.#listeners.get(recipient) ?? []) listener(id, refs);
    }
  }

  #answerMyself(id: string, refs: readonly ObjectRef[]): void {
    const { decisions, log } = this.#options;
    const { kept } = withinLimit(refs.flatMap((ref) => decisions.of(ref)));
    this.answer(id, `${apiserverRecipient}|${this.#serverId}`, kept).catch((err: unknown) => {
      log.v(2)?.info("cannot answer a request for diagnostics", { error: String(err) });
    });
  }
}

/** The recipient of an answer. Each API server answers under a name of its own: `kube-apiserver|<server id>`. */
function recipientOf({ metadata }: StoredAnswer): string {
  return (metadata.name ?? "").split("|", 1)[0]!;
}

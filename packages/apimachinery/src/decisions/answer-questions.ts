import type { Client } from "../client/client.ts";
import { isForbidden, isNotFound } from "../objects/errors/predicates.ts";
import { formatGroupVersion } from "../objects/meta/group-version.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { Turns } from "../process/event-loop/turns.ts";
import type { Logger } from "../process/logging/logger.ts";
import type { Decision, ObjectRef } from "./decision.ts";
import type { DecisionLog } from "./decision-log.ts";
import { type Answer, answerLimitBytes, answersSubresource, type Question, questionsRef } from "./question.ts";

interface AnswererOptions {
  /** Should not share a rate limit with the daemon's work. */
  readonly client: Client;
  /** `kube-scheduler`, or `kubeletRecipient(…)`. */
  readonly recipient: string;
  readonly decisions: DecisionLog;
  readonly clock: Clock;
  readonly turns: Turns;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const firstPauseMs = 1_000;
const longestPauseMs = 60_000;
/** Time limit of one question in ms, below the second that the API server waits. */
const longestWorkMs = 600;
/** Pause after the server refused access to questions or, as upstream's, does not have them. */
const unservedPauseMs = 5 * 60_000;

/**
 * Answers the API server's questions from the log until `signal` is aborted; never rejects. Without questions it costs one open
 * watch. Only one instance of a daemon may do so at a time: the leader.
 */
export async function answerQuestions(options: AnswererOptions): Promise<void> {
  const { client, recipient, clock, log, signal } = options;
  let pauseMs = firstPauseMs;
  while (!signal.aborted) {
    let waitMs = pauseMs;
    try {
      const selection = { signal, fieldSelector: `metadata.name=${recipient}` };
      for await (const { type, object } of client.watch<Question>(questionsRef, {}, selection)) {
        pauseMs = firstPauseMs;
        if (type === "ADDED") await answer(options, object);
      }
      waitMs = pauseMs = firstPauseMs; // the server ends watches now and then
    } catch (err) {
      if (signal.aborted) return;
      log.v(2)?.info("cannot watch the requests for diagnostics", { error: String(err) });
      if (isNotFound(err) || isForbidden(err)) waitMs = unservedPauseMs;
      pauseMs = Math.min(longestPauseMs, pauseMs * 2);
    }
    // Jitter, so that nodes do not reconnect simultaneously after a restart of the server.
    await clock.sleep(waitMs * (0.5 + Math.random()), signal).catch(() => {});
  }
}

async function answer(options: AnswererOptions, question: Question): Promise<void> {
  const { client, recipient, log, signal } = options;
  const { kept, cut } = withinLimit(await decisionsAbout(options, question.refs));
  const body: Answer = {
    apiVersion: formatGroupVersion(questionsRef),
    kind: "Answer",
    metadata: { name: question.metadata.name ?? "" },
    decisions: kept,
    ...(cut && { cut }),
  };
  try {
    await client.create(questionsRef, body, { name: recipient, subresource: answersSubresource, signal });
  } catch (err) {
    // The requester stops waiting after a second.
    if (!signal.aborted) log.v(2)?.info("an answer for diagnostics was not taken", { error: String(err) });
  }
}

/** Building the texts may take some milliseconds for each object: yields between objects, and omits those that take too long. */
async function decisionsAbout({ decisions, clock, turns }: AnswererOptions, refs: readonly ObjectRef[]): Promise<Decision[]> {
  const startedMs = clock.monotonic();
  const about: Decision[] = [];
  for (const ref of refs) {
    const turn = turns.next();
    if (turn) await turn;
    about.push(...decisions.of(ref));
    if (clock.monotonic() - startedMs > longestWorkMs) break;
  }
  return about;
}

/** Leaves out details first, then the rest of what does not fit. */
export function withinLimit(decisions: readonly Decision[], limitBytes = answerLimitBytes): { kept: Decision[]; cut: boolean } {
  const kept: Decision[] = [];
  let cut = false;
  let leftBytes = limitBytes;
  for (const decision of decisions) {
    const { details: _, ...short } = decision;
    const fitting = [decision, short].find((form) => sizeOf(form) <= leftBytes);
    if (fitting !== decision) cut = true;
    if (fitting === undefined) continue;
    leftBytes -= sizeOf(fitting);
    kept.push(fitting);
  }
  return { kept, cut };
}

const sizeOf = (decision: Decision): number => Buffer.byteLength(JSON.stringify(decision)) + 1;

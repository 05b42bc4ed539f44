/** Fixtures of this folder's tests: questions over storages in memory, whose watches a test feeds. */
import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { kubeletRecipient } from "@coxswain/apimachinery/decisions/question";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { Storage } from "../../storage/storage.ts";
import { Questions } from "./questions.ts";
import type { StoredQuestion } from "./stored.ts";

export const ref = (resource: string, name: string): ObjectRef => ({
  ...{ group: "", resource, kind: "K", namespace: resource === "nodes" ? "" : "default", name, uid: "" },
});

export interface Event {
  readonly type: string;
  readonly entry?: { readonly key: string; object(): unknown };
  readonly error?: Error;
}

/** A stream of events that a test pushes. */
function aStream() {
  const events: Event[] = [];
  let wake = (): void => {};
  const push = async (...more: Event[]): Promise<void> => {
    events.push(...more);
    wake();
    await settle();
  };
  async function* stream(signal: AbortSignal): AsyncGenerator<Event> {
    signal.addEventListener("abort", () => wake());
    while (!signal.aborted) {
      while (events.length > 0) yield events.shift()!;
      if (signal.aborted) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  return { push, stream };
}

/** A storage that records what is created, each of whose watches is a stream of its own. */
function aStorage(refusal?: () => Error | undefined) {
  const created: { key: string; object: unknown }[] = [];
  const watches: ReturnType<typeof aStream>[] = [];
  const storage = {
    async create(key: string, object: unknown) {
      created.push({ key, object });
      const refused = refusal?.();
      if (refused !== undefined) throw refused;
    },
    async watch({ signal }: { signal: AbortSignal }) {
      const watch = aStream();
      watches.push(watch);
      return watch.stream(signal);
    },
  };
  return { created, watches, storage: storage as unknown as Storage };
}

export function aBoard(t: { after(fn: () => void): void }, refusal?: () => Error | undefined) {
  const clock = newFakeClock();
  const asked = aStorage();
  const answered = aStorage(refusal);
  const decisions = new DecisionLog({ component: "kube-apiserver", clock });
  const problems: string[] = [];
  const log = { ...discardLogger, v: () => ({ info: (message: string) => void problems.push(message) }) };
  const questions = new Questions({
    ...{ questions: asked.storage, answers: answered.storage, decisions, clock, log: log as unknown as typeof discardLogger },
  });
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  void questions.run(stopping.signal);
  return { clock, asked, answered, questions, problems };
}

export const recipient = kubeletRecipient("n1");
export const added = (id: string, question: Partial<StoredQuestion> = {}): Event => {
  const object = { metadata: { name: id }, by: "other", requested: [{ recipient, refs: [ref("pods", id)] }], ...question };
  return { type: "ADDED", entry: { key: id, object: () => object } };
};

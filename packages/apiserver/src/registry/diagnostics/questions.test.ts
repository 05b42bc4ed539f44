/** Questions over storages in memory: renewed watches, several answers of one recipient, and whose answers are awaited. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision, ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { kubeletRecipient } from "@coxswain/apimachinery/decisions/question";
import { alreadyExists } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatMicroTime } from "@coxswain/apimachinery/objects/meta/time";
import { leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { Storage } from "../../storage/storage.ts";
import { apiserverRecipient, Questions, type Recipient } from "./questions.ts";
import { ClusterDecisions } from "./reader.ts";
import type { StoredQuestion } from "./stored.ts";

const ref = (resource: string, name: string): ObjectRef => ({
  ...{ group: "", resource, kind: "K", namespace: resource === "nodes" ? "" : "default", name, uid: "" },
});

interface Event {
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

function aBoard(t: { after(fn: () => void): void }, refusal?: () => Error | undefined) {
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

const recipient = kubeletRecipient("n1");
const added = (id: string, question: Partial<StoredQuestion> = {}): Event => {
  const object = { metadata: { name: id }, by: "other", requested: [{ recipient, refs: [ref("pods", id)] }], ...question };
  return { type: "ADDED", entry: { key: id, object: () => object } };
};

test("a renewed watch of the questions forgets those that are gone, and listeners hear of the others again", async (t) => {
  const { clock, asked, questions, problems } = aBoard(t);
  const heard: string[] = [];
  questions.listen(recipient, (id) => void heard.push(id));
  await settle();
  await asked.watches[0]?.push(added("a"), added("b"));
  await asked.watches[0]?.push({ type: "ERROR", error: new Error("compacted") });
  await clock.advance(999);
  assert.equal(asked.watches.length, 1, "not before a second has passed");
  await clock.advance(1);
  await settle();
  await asked.watches[1]?.push(added("b"));
  assert.deepEqual([heard, problems.length], [["a", "b", "b"], 1]);
  assert.deepEqual([questions.requestedRefs("a", recipient), questions.requestedRefs("b", recipient)?.length], [undefined, 1]);
});

test("a server answers the questions of others under a name of its own, not its own questions", async (t) => {
  const { asked, answered, questions } = aBoard(t);
  await settle();
  const to = { requested: [{ recipient: apiserverRecipient, refs: [ref("pods", "p")] }] };
  void questions.query(new Map([[apiserverRecipient, { refs: [], expected: false }]]), new AbortController().signal);
  await settle();
  const by = (asked.created[0]?.object as StoredQuestion | undefined)?.by ?? "";
  await asked.watches[0]?.push(added("own", { ...to, by }), added("theirs", { ...to, by: "other" }));
  assert.deepEqual(
    answered.created.map(({ key }) => key),
    [`theirs/${apiserverRecipient}|${by}`],
  );
});

test("an answer that is there already is no failure, another one that cannot be stored is", async (t) => {
  const refusals = [alreadyExists({ group: "", resource: "answers" }, "a"), new Error("etcd is away")];
  const { questions } = aBoard(t, () => refusals.shift());
  await questions.answer("a", recipient, []);
  await assert.rejects(questions.answer("a", recipient, []), /etcd is away/);
});

test("of a recipient that stands for several servers as many answers are awaited", async (t) => {
  const { answered, questions } = aBoard(t);
  const decision = (source: string): Decision => ({ source }) as Decision;
  const requested = new Map<string, Recipient>([[apiserverRecipient, { refs: [], expected: true, answers: 2 }]]);
  let done: unknown;
  void questions.query(requested, new AbortController().signal).then((answers) => {
    done = answers;
  });
  await settle();
  const answer = (server: string): Event => {
    const object = { metadata: { name: `${apiserverRecipient}|${server}` }, decisions: [decision(server)] };
    return { type: "ADDED", entry: { key: "k", object: () => object } };
  };
  await answered.watches[0]?.push(answer("one"), { type: "DELETED" }); // answers expire
  assert.equal(done, undefined);
  await answered.watches[0]?.push(answer("two"));
  assert.deepEqual(done, { decisions: [decision("one"), decision("two")], silent: [] });
});

test("who is asked: expected are holders of leases that have not run out, dead are kubelets whose leases have, of at most 500 objects", async () => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const lease = (namespace: string, name: string, holderIdentity: string, ageMs: number) =>
    client.put(leases, {
      metadata: { namespace, name },
      spec: { holderIdentity, leaseDurationSeconds: 40, renewTime: formatMicroTime(clock.now() - ageMs) },
    });
  lease("kube-system", "kube-controller-manager", "a", 39_999);
  lease("kube-system", "kube-scheduler", "a", 40_000);
  lease("kube-node-lease", "fresh", "fresh", 0);
  lease("kube-node-lease", "stale", "stale", 40_000);
  lease("kube-node-lease", "left", "", 0);
  let asked: ReadonlyMap<string, Recipient> = new Map();
  const questions = {
    async query(requested: ReadonlyMap<string, Recipient>) {
      asked = requested;
      return { decisions: [], silent: ["kube-scheduler"] };
    },
  } as unknown as Questions;
  const decisions = new DecisionLog({ component: "kube-apiserver", clock });
  const reader = new ClusterDecisions({ questions, decisions, client, servers: async () => 3, clock });
  const refs = [
    ...["fresh", "stale", "left", "unknown"].map((name) => ref("nodes", name)),
    ...Array.from({ length: 497 }, (_, i) => ref("configmaps", `c${i}`)),
    ref("pods", "beyond"),
  ];
  const { silent } = await reader.of(refs, new AbortController().signal);
  assert.deepEqual(silent.toSorted(), ["kube-scheduler", "kubelet/left", "kubelet/stale"]);
  assert.deepEqual(Object.fromEntries(Array.from(asked, ([name, { refs, ...rest }]) => [name, { ...rest, refs: refs.length }])), {
    "kube-controller-manager": { expected: true, refs: 500 },
    [apiserverRecipient]: { expected: true, answers: 2, refs: 500 },
    [kubeletRecipient("fresh")]: { expected: true, refs: 1 },
    [kubeletRecipient("unknown")]: { expected: false, refs: 1 },
  });
  const pod = ref("pods", "p");
  await reader.of([pod], new AbortController().signal);
  assert.equal(asked.get("kube-scheduler")?.expected, false, "at the end of its lease");
});

/** Questions over storages in memory: renewed watches, several answers of one recipient, and whose answers are awaited. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Decision } from "@coxswain/apimachinery/decisions/decision";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { kubeletRecipient } from "@coxswain/apimachinery/decisions/question";
import { alreadyExists } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatMicroTime } from "@coxswain/apimachinery/objects/meta/time";
import { leases, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { apiserverRecipient, type Questions, type Recipient } from "./questions.ts";
import { ClusterDecisions } from "./reader.ts";
import type { StoredQuestion } from "./stored.ts";
import { aBoard, added, type Event, recipient, ref } from "./testing.ts";

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
  await answered.watches[0]?.push(answer("one"), { ...answer("two"), type: "MODIFIED" }, { type: "DELETED" }); // answers expire
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

test("an answer of one who was not asked, and a second one of the same, end no question", async (t) => {
  const { answered, questions } = aBoard(t);
  const ask: Recipient = { refs: [], expected: true };
  let done: unknown;
  void questions
    .query(
      new Map([
        [recipient, ask],
        ["kube-scheduler", ask],
      ]),
      new AbortController().signal,
    )
    .then((answers) => {
      done = answers;
    });
  await settle();
  const answer = (name: string): Event => ({
    type: "ADDED",
    entry: { key: name, object: () => ({ metadata: { name }, decisions: [{ source: name }] }) },
  });
  await answered.watches[0]?.push(answer("stranger"), answer(recipient), answer(recipient));
  assert.equal(done, undefined);
  await answered.watches[0]?.push(answer("kube-scheduler"));
  const decisions = ["stranger", recipient, recipient, "kube-scheduler"].map((source) => ({ source }));
  assert.deepEqual(done, { decisions, silent: [] });
});

test("a question that cannot be written, and answers that cannot be watched, are failures that leave no timer", async (t) => {
  const { clock, asked, answered, questions } = aBoard(t);
  await settle();
  const requested = new Map<string, Recipient>([[recipient, { refs: [], expected: true }]]);
  const { signal } = new AbortController();
  const failed = assert.rejects(questions.query(requested, signal), { message: "compacted" });
  await settle();
  await answered.watches[0]?.push({ type: "ERROR", error: new Error("compacted") });
  await failed;
  asked.storage.create = () => Promise.reject(new Error("etcd is away"));
  await assert.rejects(questions.query(requested, signal), { message: "etcd is away" });
  assert.deepEqual([clock.waiting, getEventListeners(signal, "abort").length], [0, 0]);
});

test("at most 32 questions are open, and each that ends makes room for another", async (t) => {
  const { clock, asked, questions } = aBoard(t);
  await settle();
  const ask = () => questions.query(new Map([[recipient, { refs: [], expected: true }]]), new AbortController().signal);
  const silent = { decisions: [], silent: [recipient] };
  for (const round of [1, 2]) {
    const open = Array.from({ length: 32 }, ask);
    await settle();
    assert.equal(asked.created.length, 32 * round);
    assert.deepEqual(await ask(), silent);
    assert.equal(asked.created.length, 32 * round, "not written");
    await clock.advance(1000);
    assert.deepEqual(await Promise.all(open), Array(32).fill(silent));
  }
});

test("others are awaited for 250 ms, who is expected for a second", async (t) => {
  const { clock, questions } = aBoard(t);
  const scheduler = "kube-scheduler";
  for (const { expected, waitsMs } of [
    { expected: false, waitsMs: 250 },
    { expected: true, waitsMs: 1000 },
  ]) {
    let done: unknown;
    const requested = new Map([
      [recipient, { refs: [], expected: false }],
      [scheduler, { refs: [], expected }],
    ]);
    void questions.query(requested, new AbortController().signal).then((answers) => {
      done = answers;
    });
    await settle();
    await clock.advance(waitsMs - 1);
    await settle();
    assert.equal(done, undefined);
    await clock.advance(1);
    await settle();
    assert.deepEqual(done, { decisions: [], silent: expected ? [scheduler] : [] });
  }
});

test("a server that cannot store its own answer says so in its log, and goes on", async (t) => {
  const { asked, answered, problems } = aBoard(t, () => new Error("etcd is away"));
  await settle();
  const to = { by: "other", requested: [{ recipient: apiserverRecipient, refs: [ref("pods", "p")] }] };
  await asked.watches[0]?.push(added("a", to), added("b", to));
  assert.deepEqual(
    [answered.created.length, problems],
    [2, ["cannot answer a request for diagnostics", "cannot answer a request for diagnostics"]],
  );
});

/** A reader whose questions are answered by nobody, and what it asks. */
function aReader(client: Client, servers: number) {
  const asked: ReadonlyMap<string, Recipient>[] = [];
  const questions = {
    async query(requested: ReadonlyMap<string, Recipient>) {
      asked.push(requested);
      return { decisions: [], silent: [] };
    },
  } as unknown as Questions;
  const clock = newFakeClock();
  const decisions = new DecisionLog({ component: "kube-apiserver", clock });
  return {
    asked,
    decisions,
    reader: new ClusterDecisions({ questions, decisions, client, servers: async () => servers, clock }),
  };
}

test("of pods the scheduler and the kubelet of each one's node are asked, of other objects neither, and the only server is not", async () => {
  const client = newFakeClient({ clock: newFakeClock() });
  for (const [name, nodeName] of Object.entries({ a: "n1", b: "n2", c: "n1", waits: undefined }))
    client.put(pods, { metadata: { namespace: "default", name }, spec: { containers: [], ...(nodeName && { nodeName }) } });
  const { asked, reader } = aReader(client, 1);
  const refs = [...["a", "b", "c", "waits", "gone"].map((name) => ref("pods", name)), ref("nodes", "n2"), ref("configmaps", "m")];
  const other = { ...ref("pods", "a"), group: "metrics.k8s.io" };
  const { signal } = new AbortController();
  await reader.of([...refs, other], signal);
  await reader.of([ref("configmaps", "m")], signal);
  const shown = asked.map((one) =>
    Object.fromEntries(Array.from(one, ([name, { refs }]) => [name, refs.map(({ group, name }) => `${group}${name}`).join()])),
  );
  assert.deepEqual(shown, [
    {
      "kube-controller-manager": "a,b,c,waits,gone,n2,m,metrics.k8s.ioa",
      "kube-scheduler": "a,b,c,waits,gone",
      [kubeletRecipient("n1")]: "a,c",
      [kubeletRecipient("n2")]: "n2,b",
    },
    { "kube-controller-manager": "m" },
  ]);
});

test("about no object nobody is asked, and a lease that cannot be read is a failure", async () => {
  const get = () => Promise.reject(new Error("etcd is away"));
  const { asked, reader } = aReader({ get } as unknown as Client, 1);
  const { signal } = new AbortController();
  assert.deepEqual(await reader.of([], signal), { decisions: [], silent: [] });
  await assert.rejects(reader.of([ref("configmaps", "m")], signal), { message: "etcd is away" });
  assert.deepEqual(asked, []);
});

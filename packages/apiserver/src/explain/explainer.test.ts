import assert from "node:assert/strict";
import { test } from "node:test";
import type { DecisionReader } from "@coxswain/apimachinery/decisions/decision";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { type Finding, nameOf } from "./explanation.ts";
import { earlier, explained, stored } from "./testing.ts";
import { explanationTable, explanationText } from "./text.ts";

const pendingPod = (message: string, spec: object = {}): Unstructured =>
  stored("v1", "Pod", "p", {
    spec: { containers: [{ name: "main", image: "img" }], ...spec },
    status: {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message, lastTransitionTime: earlier }],
    },
  });

const decided = {
  component: "kube-scheduler",
  source: "scheduler",
  verdict: "refused" as const,
  reason: "InsufficientResources",
  summary: "needs 300m more CPU on n1",
  since: earlier,
  lastAt: earlier,
  count: 1,
  object: { group: "", resource: "pods", kind: "Pod", namespace: "default", name: "p", uid: "uid-p" },
};
const tooLarge = pendingPod("0/1 nodes are available: 1 Insufficient cpu.");

test("the scheduler's numbers follow what objects show", async () => {
  const { cause } = await explained({ objects: [tooLarge], decisions: [decided] });
  assert.equal(cause?.summary, "not enough cpu on 1 node: it requests ?; needs 300m more CPU on n1");
});

test("a decision about a healthy pod is no finding; about an object of a kind without rules it is one for some minutes", async () => {
  const well = stored("v1", "Pod", "p", { spec: {}, status: { phase: "Succeeded" } });
  assert.equal((await explained({ objects: [well], decisions: [decided] })).healthy, true);
  const account = stored("v1", "ServiceAccount", "p");
  const of = { ...decided, object: { ...decided.object, resource: "serviceaccounts", kind: "ServiceAccount" } };
  const lately = { ...of, lastAt: "2026-03-01T11:59:00Z" };
  assert.equal((await explained({ objects: [account], decisions: [lately] })).cause?.summary, "needs 300m more CPU on n1");
  assert.equal((await explained({ objects: [account], decisions: [{ ...of, lastAt: "2026-03-01T11:40:00Z" }] })).healthy, true);
  assert.equal((await explained({ objects: [account], decisions: [{ ...lately, component: "kube-apiserver" }] })).healthy, true);
});

test("a decision about what may not be read is reported without its text", async () => {
  const related = [{ ...decided.object, resource: "nodes", kind: "Node", namespace: "", name: "n1" }];
  const hidden = ["nodes"];
  const { cause } = await explained({ objects: [tooLarge], decisions: [{ ...decided, related }], hidden });
  assert.equal(cause?.summary, "not enough cpu on 1 node: it requests ?");
  const object = { ...decided.object, resource: "serviceaccounts", kind: "ServiceAccount" };
  const decisions = [{ ...decided, object, related, lastAt: "2026-03-01T11:59:00Z" }];
  const account = await explained({ objects: [stored("v1", "ServiceAccount", "p")], decisions, hidden });
  assert.equal(account.cause?.summary, "insufficient resources (details are of objects that you may not read)");
  assert.doesNotMatch(JSON.stringify(account), /n1/);
});

test("the last decisions are told beside the findings, also of a healthy one, in plain words where details may not be read", async () => {
  const well = stored("v1", "Pod", "p", { spec: {}, status: { phase: "Succeeded" } });
  const related = [{ ...decided.object, resource: "nodes", kind: "Node", namespace: "", name: "n1" }];
  const placed = {
    ...{ ...decided, verdict: "done" as const, reason: "Scheduled", related, details: { best: ["n1"] } },
    ...{ summary: "placed on the best of 3 nodes; scores: n1 80", plain: "placed on the best of 3 nodes" },
  };
  const all = await explained({ objects: [well], decisions: [placed] });
  assert.equal(all.decisions?.[0]?.summary, placed.summary);
  assert.equal(all.decisions?.[0]?.plain, undefined);
  const now = Date.parse("2026-03-01T12:00:00Z");
  assert.equal(
    explanationText(all, now),
    `Healthy: pod/p: nothing is wrong with it.\n\nLast decisions:\n  pod/p  kube-scheduler scheduler: ${placed.summary}  (for 10m, since ${earlier})\n`,
  );
  const some = await explained({ objects: [well], decisions: [placed], hidden: ["nodes"] });
  assert.equal(some.decisions?.[0]?.summary, "placed on the best of 3 nodes");
  assert.doesNotMatch(JSON.stringify(some), /n1/);
  const none = await explained({ objects: [well], decisions: [placed], hidden: ["events"] });
  assert.equal(none.decisions?.[0]?.summary, "scheduled (details are of events that you may not read)");
  assert.doesNotMatch(JSON.stringify(none), /n1|best/);
});

test("daemons that did not answer are named, and not queried again", async () => {
  const explanation = await explained({ objects: [tooLarge], silent: ["kube-scheduler"] });
  assert.deepEqual(explanation.silent, ["kube-scheduler"]);
  assert.match(explanationText(explanation, 0), /\nNot queried, because they did not answer: kube-scheduler\n$/);
});

test("daemons are queried for each object that is visited, until one does not answer", async () => {
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  const waits = pendingPod('persistentvolumeclaim "data" not found', { volumes });
  const claim = stored("v1", "PersistentVolumeClaim", "data", { spec: {}, status: { phase: "Pending" } });
  for (const silent of [[], ["kube-scheduler"]]) {
    const queried: string[][] = [];
    const daemons: DecisionReader = {
      async of(refs) {
        queried.push(refs.map(nameOf));
        return { decisions: [], silent };
      },
    };
    await explained({ objects: [waits, claim], daemons });
    const expected = silent.length === 0 ? [["pod/p"], ["persistentvolumeclaim/data"]] : [["pod/p"]];
    assert.deepEqual(queried, expected);
  }
});

test("a failed query leaves its objects without decisions; that of a client that has gone ends the explanation", async () => {
  const gone = new AbortController();
  const daemons: DecisionReader = { of: () => Promise.reject(new Error("no etcd")) };
  const { cause, silent } = await explained({ objects: [tooLarge], daemons }, gone.signal);
  assert.deepEqual([cause?.summary, silent], ["not enough cpu on 1 node: it requests ?", ["the daemons"]]);
  gone.abort(new Error("gone"));
  await assert.rejects(explained({ objects: [tooLarge], daemons }, gone.signal), /gone/);
});

test("the text has at most ten decisions, and none that the findings contain", async () => {
  const decisions = [decided, ...Array.from({ length: 12 }, (_, i) => ({ ...decided, reason: "Other", summary: `other ${i}` }))];
  const text = explanationText(await explained({ objects: [tooLarge], decisions }), 0);
  const told = text.split("\n").filter((line) => line.includes("kube-scheduler scheduler: "));
  assert.deepEqual(
    told.map((line) => /scheduler: ([^(]*) {2}\(/.exec(line)?.[1]),
    Array.from({ length: 10 }, (_, i) => `other ${i}`),
  );
});

test("a decision is told with how often it was made, and when the next try is", async () => {
  const now = Date.parse("2026-03-01T12:00:00Z");
  const well = stored("v1", "Pod", "p", { spec: {}, status: { phase: "Succeeded" } });
  const twice = { ...decided, count: 2, nextTryAt: "2026-03-01T12:05:00Z" };
  assert.equal(
    explanationText(await explained({ objects: [well], decisions: [twice, { ...decided, since: "2026-03-01T13:00:00Z" }] }), now),
    `Healthy: pod/p: nothing is wrong with it.\n\nLast decisions:\n` +
      `  pod/p  kube-scheduler scheduler: needs 300m more CPU on n1  (for 10m, since ${earlier}, 2 times; next try at 2026-03-01T12:05:00Z)\n` +
      `  pod/p  kube-scheduler scheduler: needs 300m more CPU on n1  (for 0s, since 2026-03-01T13:00:00Z)\n`,
  );
});

test("a decision about an object of a kind without rules is told with its remedy, and leads to what it names", async () => {
  const object = { ...decided.object, resource: "serviceaccounts", kind: "ServiceAccount" };
  const lastAt = "2026-03-01T11:59:00Z";
  const related = [{ ...decided.object, resource: "pods", kind: "Pod", name: "other" }];
  const other = { ...tooLarge, metadata: { ...tooLarge.metadata, name: "other" } };
  const first = { ...decided, object, lastAt, verdict: "waiting" as const, summary: "waits" };
  const refused = { ...decided, object, lastAt, related, remedy: "do it" };
  const { chain } = await explained({ objects: [stored("v1", "ServiceAccount", "p"), other], decisions: [first, refused] });
  assert.deepEqual(
    chain.map(({ object: { kind, name }, ...finding }) => [`${kind} ${name}`, finding.summary, finding.remedy]),
    [
      ["ServiceAccount p", "needs 300m more CPU on n1", "do it"],
      [
        "Pod other",
        "not enough cpu on 1 node: it requests ?",
        "Request less in the pod, free resources by deleting or scaling down other pods, or add a node.",
      ],
    ],
  );
  const waiting = await explained({ objects: [stored("v1", "ServiceAccount", "p")], decisions: [first] });
  assert.deepEqual(waiting.cause, {
    object: { ...object, uid: "uid-p" },
    by: "kube-scheduler",
    reason: "InsufficientResources",
    summary: "waits",
    since: earlier,
  });
});

test("a table has one row for each finding, with the time since then", async () => {
  const owner = { ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: "gone", uid: "u" }] };
  const now = Date.parse("2026-03-01T12:00:00Z");
  const rows = async (...objects: Unstructured[]) => {
    const table = explanationTable(await explained({ objects }), now) as { columnDefinitions: object[]; rows: object[] };
    return { ...table, columnDefinitions: table.columnDefinitions.map((one) => Object.entries(one).flat().join(" ")) };
  };
  assert.deepEqual(await rows(tooLarge), {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: {},
    columnDefinitions: [
      "name Object type string format name description The object that the finding is about. priority 0",
      "name Reason type string format  description CamelCase reason. priority 0",
      "name Since type string format  description How long it has been so. priority 0",
      "name By type string format  description Who says so. priority 1",
      "name Summary type string format  description What is wrong. priority 0",
    ],
    rows: [
      {
        cells: ["pod/p", "InsufficientResources", "10m", "kube-scheduler", "not enough cpu on 1 node: it requests ?"],
        object: null,
      },
    ],
  });
  assert.deepEqual((await rows(stored("v1", "ConfigMap", "c", { metadata: owner }))).rows, [
    {
      cells: [
        ...["configmap/c", "OwnerGone", "<unknown>", "garbage-collector"],
        "its owner deployment/gone does not exist any more: the garbage collector will delete it",
      ],
      object: null,
    },
  ]);
});

test("what to do is what the last finding with a remedy says, and to wait where none has one", () => {
  const object = { group: "", resource: "pods", kind: "Pod", namespace: "default", name: "p", uid: "" };
  const finding = { object, by: "explain", reason: "R", summary: "s" };
  const textOf = (...chain: Finding[]) =>
    explanationText(
      { kind: "Explanation", apiVersion: "diagnostics.coxswain.dev/v1", object, healthy: false, cause: chain.at(-1)!, chain },
      0,
    )
      .trimEnd()
      .split("\n")
      .at(-1)
      ?.trim();
  assert.equal(textOf({ ...finding, remedy: "a" }, { ...finding, remedy: "b" }, finding), "b");
  assert.equal(textOf({ ...finding, remedy: "a" }, { ...finding, remedy: "c" }), "c");
  assert.equal(textOf(finding), "Wait; if it stays so, look at the log of the component that the cause names.");
});

test("an explanation visits at most 80 objects, queries eight times, of 20 objects at most, and has 40 decisions", async () => {
  const claims = Array.from({ length: 90 }, (_, at) =>
    stored("v1", "PersistentVolumeClaim", `c${at}`, { spec: {}, status: { phase: "Bound" } }),
  );
  const many = stored("v1", "ServiceAccount", "p");
  const object = { ...decided.object, resource: "serviceaccounts", kind: "ServiceAccount" };
  const related = claims.map(({ metadata: { name = "" } }) => ({
    ...{ group: "", resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim", namespace: "default", name, uid: "" },
  }));
  const found = async (unbound: number) => {
    const objects = claims.map((claim, at) => (at === unbound ? { ...claim, status: { phase: "Lost" } } : claim));
    const decision = { ...decided, object, related, lastAt: "2026-03-01T11:59:00Z" };
    const { chain } = await explained({ objects: [many, ...objects], decisions: [decision] });
    return chain.map(({ object: { name } }) => name);
  };
  assert.deepEqual(await found(78), ["p", "c78"]);
  assert.deepEqual(await found(79), ["p"]);
  const queried: number[] = [];
  const daemons: DecisionReader = {
    async of(refs) {
      queried.push(refs.length);
      const all = Array.from({ length: 41 }, () => ({ ...decided, object, related, lastAt: "2026-03-01T11:59:00Z" }));
      return { decisions: queried.length === 1 ? all : [], silent: [] };
    },
  };
  const { decisions } = await explained({ objects: [many, ...claims.map((one) => ({ ...one }))], daemons });
  assert.deepEqual([queried, decisions?.length], [[1, 20, 1, 1, 1, 1, 1, 1], 40]);
});

test("a finding that has no time and nobody who said so has no brackets", async () => {
  const owner = [{ apiVersion: "apps/v1", kind: "Deployment", name: "gone", uid: "u" }];
  const config = stored("v1", "ConfigMap", "c", { metadata: { ownerReferences: owner } });
  const explanation = await explained({ objects: [config] });
  const textBy = (by: string) =>
    explanationText({ ...explanation, chain: explanation.chain.map((finding) => ({ ...finding, by })) }, 0);
  assert.match(textBy("kubelet"), / {2}\(kubelet\)\n/);
  assert.doesNotMatch(textBy("explain"), /\(/);
});

test("objects that refer to each other are visited once each", async () => {
  const late = stored("storage.k8s.io/v1", "StorageClass", "late", {
    provisioner: "x",
    volumeBindingMode: "WaitForFirstConsumer",
  });
  const claim = stored("v1", "PersistentVolumeClaim", "data", {
    spec: { storageClassName: "late" },
    status: { phase: "Pending" },
  });
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  const waits = pendingPod("0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.", { volumes });
  const { chain } = await explained({ objects: [waits, claim, late] });
  assert.deepEqual(
    chain.map(({ object }) => nameOf(object)),
    ["pod/p", "persistentvolumeclaim/data"],
  );
});

test("an object that was visited before does not hide the next that a decision names", async () => {
  const object = { ...decided.object, resource: "serviceaccounts", kind: "ServiceAccount" };
  const related = [object, decided.object];
  const decisions = [{ ...decided, object, related, lastAt: "2026-03-01T11:59:00Z" }];
  const { chain } = await explained({ objects: [stored("v1", "ServiceAccount", "p"), tooLarge], decisions });
  assert.deepEqual(
    chain.map(({ object: found }) => nameOf(found)),
    ["serviceaccount/p", "pod/p"],
  );
});

test("a finding that only names another object is none when that object is healthy", async () => {
  const cron = stored("batch/v1", "CronJob", "c", { spec: { schedule: "* * * * *" } });
  const owner = [{ apiVersion: "batch/v1", kind: "CronJob", name: "c", uid: "uid-c" }];
  const aJob = (conditions: object[]) =>
    stored("batch/v1", "Job", "j", {
      metadata: { ownerReferences: owner },
      spec: {},
      status: { startTime: earlier, conditions },
    });
  const well = await explained({ objects: [cron, aJob([{ type: "Complete", status: "True" }])] });
  assert.deepEqual([well.healthy, well.chain], [true, []]);
  const failed = await explained({ objects: [cron, aJob([{ type: "Failed", status: "True", reason: "BackoffLimitExceeded" }])] });
  assert.deepEqual(
    failed.chain.map(({ object }) => nameOf(object)),
    ["cronjob/c", "job/j"],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Pod, ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps, pods, resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newUnlimitedTurns, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newResourceQuotaController } from "./controller.ts";
import { usageOf } from "./usage.ts";

const verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
const core = (...names: string[]): object => ({
  resources: names.map((name) => ({ name, kind: name === "pods" ? "Pod" : "ConfigMap", namespaced: true, verbs })),
});

async function started(
  t: { after(fn: () => void): void },
  prepare: (world: TestContext) => void,
  turns = newUnlimitedTurns(),
): Promise<TestContext> {
  const made = newTestContext(t, { resourceQuotaSyncPeriodMs: 300_000, namespaceSyncPeriodMs: 7_000_000 });
  const world = { ...made, ctx: { ...made.ctx, turns } };
  world.client.rawAnswers.set("/api", { versions: ["v1"] });
  world.client.rawAnswers.set("/apis", { groups: [] });
  world.client.rawAnswers.set("/api/v1", core("pods", "configmaps"));
  prepare(world);
  await world.run(newResourceQuotaController(world.ctx));
  await settle(60);
  return world;
}

const aQuota = (hard: Record<string, string>, more: object = {}): ResourceQuota & KubeObject => ({
  metadata: { namespace: "default", name: "q", uid: "q" },
  spec: { hard, ...more },
});
const asking = (name: string, cpu: string, status = {}): Pod => ({
  ...aPod({ name }),
  spec: { containers: [{ name: "c", image: "i", resources: { requests: { cpu } } }] },
  status,
});
const statusIn = ({ client }: TestContext) => client.object<ResourceQuota & KubeObject>(resourceQuotas, "default/q")?.status;

test("a new quota gets its bounds and what is used of them, from its namespace alone", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(pods, asking("a", "500m"), asking("b", "1"), asking("over", "4", { phase: "Succeeded" }));
    client.put(pods, { ...asking("c", "1"), metadata: { ...aPod({ name: "c" }).metadata, namespace: "other" } });
    client.put(resourceQuotas, aQuota({ cpu: "2000m", pods: "10", "count/configmaps": "3" }));
  });
  assert.deepEqual(statusIn(world), {
    hard: { cpu: "2", pods: "10", "count/configmaps": "3" },
    used: { cpu: "1500m", pods: "2", "count/configmaps": "0" },
  });
});

test("a quota counts itself, by the watch that brought it", async (t) => {
  const world = await started(t, ({ client }) => {
    client.rawAnswers.set("/api/v1", core("pods", "configmaps", "resourcequotas"));
    client.put(resourceQuotas, aQuota({ resourcequotas: "5" }));
  });
  assert.deepEqual(statusIn(world)?.used, { resourcequotas: "1" });
  const lists = world.client.actions.filter(({ verb, resource }) => verb === "list" && resource === "resourcequotas");
  assert.equal(lists.length, 1, "another watch could be behind");
});

test("a quota with scopes counts what they take in", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(pods, asking("a", "500m"), aPod({ name: "best" }));
    client.put(resourceQuotas, aQuota({ pods: "10" }, { scopes: ["BestEffort"] }));
  });
  assert.deepEqual(statusIn(world)?.used, { pods: "1" });
});

test("the usage of a pod that is deleted or finished is released at once", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(pods, asking("a", "1"), asking("b", "1"), asking("c", "1"));
    client.put(resourceQuotas, aQuota({ cpu: "3" }));
  });
  assert.deepEqual(statusIn(world)?.used, { cpu: "3" });
  world.client.remove(pods, "default/a");
  await settle(60);
  assert.deepEqual(statusIn(world)?.used, { cpu: "2" });
  world.client.put(pods, asking("b", "1", { phase: "Failed" }));
  await settle(60);
  assert.deepEqual(statusIn(world)?.used, { cpu: "1" });
});

test("counts again when the bounds change, not when admission charges", async (t) => {
  const world = await started(t, ({ client }) => {
    client.put(pods, asking("a", "1"));
    client.put(resourceQuotas, aQuota({ cpu: "3" }));
  });
  const charged = world.client.object<ResourceQuota & KubeObject>(resourceQuotas, "default/q") as ResourceQuota & KubeObject;
  world.client.put(resourceQuotas, { ...charged, status: { hard: { cpu: "3" }, used: { cpu: "2" } } } as never);
  await settle(60);
  assert.deepEqual(statusIn(world)?.used, { cpu: "2" });
  world.client.put(resourceQuotas, { ...aQuota({ cpu: "5" }), status: { hard: { cpu: "3" }, used: { cpu: "2" } } } as never);
  await settle(60);
  assert.deepEqual(statusIn(world), { hard: { cpu: "5" }, used: { cpu: "1" } });
});

test("everything is counted anew in each sync period", async (t) => {
  const world = await started(t, ({ client }) => client.put(resourceQuotas, aQuota({ pods: "3" })));
  const quota = world.client.object<ResourceQuota & KubeObject>(resourceQuotas, "default/q") as ResourceQuota & KubeObject;
  world.client.put(resourceQuotas, { ...quota, status: { hard: { pods: "3" }, used: { pods: "3" } } } as never);
  await settle(60);
  assert.deepEqual(statusIn(world)?.used, { pods: "3" });
  await world.clock.advance(300_000);
  await settle(60);
  assert.deepEqual(statusIn(world)?.used, { pods: "0" });
});

test("a name that nothing has stays uncounted until the server has its resource", async (t) => {
  const world = await started(t, ({ client }) => {
    client.rawAnswers.set("/api/v1", core("pods"));
    client.put(configMaps, { metadata: { namespace: "default", name: "x" } });
    client.put(resourceQuotas, aQuota({ pods: "3", "count/configmaps": "3" }));
  });
  assert.deepEqual(statusIn(world), { hard: { pods: "3", "count/configmaps": "3" }, used: { pods: "0" } });
  world.client.rawAnswers.set("/api/v1", core("pods", "configmaps"));
  await world.clock.advance(31_000);
  await settle(60);
  assert.deepEqual(statusIn(world)?.used, { pods: "0", "count/configmaps": "1" });
});

test("only what some quota bounds is watched", async (t) => {
  const world = await started(t, ({ client }) => client.put(resourceQuotas, aQuota({ pods: "3" })));
  const watched = new Set(world.client.actions.filter(({ verb }) => verb === "watch").map(({ resource }) => resource));
  assert.deepEqual([...watched].sort(), ["pods", "resourcequotas"]);
});

test("many pods are counted with pauses in which others have their turn, and one that changes anew", async (t) => {
  let turns = 0;
  let counting = true;
  let nowMs = 0; // each look at the clock takes 10 µs
  const world = await started(
    t,
    ({ client }) => {
      client.put(pods, ...Array.from({ length: 5000 }, (_, i) => asking(`p${i}`, "1m")));
      client.put(resourceQuotas, aQuota({ cpu: "10" }));
      const turn = (): void => {
        turns++;
        if (counting) setImmediate(turn);
      };
      client.react("update", "resourcequotas", () => {
        counting = false;
        return undefined;
      });
      client.react("list", "resourcequotas", () => {
        setImmediate(turn);
        return undefined;
      });
    },
    new Turns(() => (nowMs += 0.01)),
  );
  assert.equal(statusIn(world)?.used?.["cpu"], "5");
  assert.ok(turns >= 5, `${turns} turns`);
  world.client.put(pods, asking("p0", "1m", { phase: "Failed" }));
  await settle(60);
  assert.equal(statusIn(world)?.used?.["cpu"], "4999m");
});

test("a pod that may take all of 64 bits of time to go is counted until it is gone", async (t) => {
  // an int64 beyond the safe integers is decoded as bigint
  const deletionGracePeriodSeconds = 9223372036854775807n as unknown as number;
  const pod = asking("a", "1");
  const metadata = { ...pod.metadata, deletionTimestamp: "2022-01-01T00:00:00Z", deletionGracePeriodSeconds };
  const world = await started(t, ({ client }) => {
    client.put(pods, { ...pod, metadata });
    client.put(resourceQuotas, aQuota({ cpu: "10" }));
  });
  assert.equal(statusIn(world)?.used?.["cpu"], "1");
});

test("quotas of what cannot be listed keep no other from being counted, and are when it can be again", async (t) => {
  let isBroken = true;
  const stuck = (i: number) => {
    const quota = aQuota({ "count/configmaps": "3" });
    return { ...quota, metadata: { ...quota.metadata, name: `stuck-${i}`, uid: `stuck-${i}` } };
  };
  const world = await started(t, ({ client }) => {
    client.react("list", "configmaps", () => {
      if (isBroken) throw serviceUnavailable("its conversion webhook is away");
      return undefined;
    });
    client.put(resourceQuotas, ...Array.from({ length: 5 }, (_, i) => stuck(i))); // as many as workers
  });
  world.client.put(pods, asking("a", "1"));
  world.client.put(resourceQuotas, aQuota({ pods: "10" }));
  await settle(60);
  await world.clock.advance(10_000);
  await settle(60);
  assert.deepEqual(statusIn(world)?.used, { pods: "1" });
  isBroken = false;
  await world.clock.advance(300_000);
  await settle(60);
  const used = world.client.object<ResourceQuota & KubeObject>(resourceQuotas, "default/stuck-4")?.status?.used;
  assert.deepEqual(used, { "count/configmaps": "0" });
});

test("a quota of a resource that is no longer served is counted as far as it can be", async (t) => {
  const world = await started(t, ({ client }) => {
    client.react("list", "configmaps", () => {
      throw serviceUnavailable("gone");
    });
    client.put(resourceQuotas, aQuota({ "count/configmaps": "3", pods: "10" }));
  });
  world.client.rawAnswers.set("/api/v1", core("pods"));
  await world.clock.advance(60_000);
  await settle(60);
  assert.deepEqual(statusIn(world)?.used, { pods: "0" });
});

test("a resource that cannot be created, deleted and watched in a namespace is neither watched nor counted", async (t) => {
  const world = await started(t, ({ client }) => {
    const resource = (name: string, kind: string, more: object = {}) => ({ name, kind, namespaced: true, verbs, ...more });
    client.rawAnswers.set("/api/v1", {
      resources: [
        resource("nodes", "Node", { namespaced: false }),
        resource("events", "Event"),
        resource("secrets", "Secret", { verbs: verbs.filter((verb) => verb !== "watch") }),
        resource("pods", "Pod"),
      ],
    });
    client.rawAnswers.set("/apis", { groups: [{ name: "events.k8s.io", versions: [{ version: "v1" }] }] });
    client.rawAnswers.set("/apis/events.k8s.io/v1", { resources: [resource("events", "Event")] });
    const hard = { "count/nodes": "1", "count/events": "1", "count/events.events.k8s.io": "1", "count/secrets": "1", pods: "1" };
    client.put(resourceQuotas, aQuota(hard));
  });
  assert.deepEqual(statusIn(world)?.used, { pods: "0" });
  const lists = world.client.actions.filter(({ verb }) => verb === "list").map(({ resource }) => resource);
  assert.deepEqual(new Set(lists), new Set(["pods", "resourcequotas"]));
});

for (const { name, act, want } of [
  { name: "deleted", act: ({ client }: TestContext) => client.remove(resourceQuotas, "default/q"), want: undefined },
  {
    name: "changed",
    act: ({ client }: TestContext) => client.put(resourceQuotas, aQuota({ "count/configmaps": "7", pods: "2" })),
    want: { hard: { "count/configmaps": "7", pods: "2" }, used: { "count/configmaps": "0", pods: "0" } },
  },
]) {
  test(`a quota that is ${name} while its resources are listed for the first time`, async (t) => {
    let isServed = false;
    const world = await started(t, ({ client }) => {
      client.react("list", "configmaps", () => {
        if (!isServed) throw serviceUnavailable("the server is away");
        return undefined;
      });
      client.put(resourceQuotas, aQuota({ "count/configmaps": "3" }));
    });
    act(world);
    await settle(30);
    assert.equal(statusIn(world), undefined);
    isServed = true;
    await world.clock.advance(5000); // less than the time limit of the wait
    await settle(60);
    assert.deepEqual(statusIn(world), want);
    // None in between that lacks one of the names.
    for (const { sent } of world.client.writes) assert.deepEqual((sent as ResourceQuota).status, want);
  });
}

test("a resource that is no longer served is no longer watched", async (t) => {
  const world = await started(t, ({ client }) => client.put(resourceQuotas, aQuota({ "count/configmaps": "3", pods: "10" })));
  const watches = () => world.client.actions.filter(({ verb, resource }) => verb === "watch" && resource === "configmaps").length;
  assert.equal(watches(), 1);
  world.client.rawAnswers.set("/api/v1", core("pods"));
  await world.clock.advance(31_000);
  await settle(60);
  world.client.endWatches();
  await settle(30);
  await world.clock.advance(60_000);
  await settle(60);
  assert.equal(watches(), 1);
});

test("a terminating pod is no longer counted when its grace period ends, without an event", async (t) => {
  const pod = asking("a", "1");
  const metadata = { ...pod.metadata, deletionTimestamp: "2022-01-01T00:00:00Z", deletionGracePeriodSeconds: 60 };
  const world = await started(t, ({ client }) => {
    client.put(pods, { ...pod, metadata });
    client.put(resourceQuotas, aQuota({ cpu: "10" }));
  });
  assert.equal(statusIn(world)?.used?.["cpu"], "1");
  await world.clock.advance(300_000);
  await settle(60);
  assert.equal(statusIn(world)?.used?.["cpu"], "0");
});

test("waiting for caches leaves no timer behind", async (t) => {
  const world = await started(t, ({ client }) => client.put(resourceQuotas, aQuota({ pods: "3" })));
  const before = world.clock.waiting;
  world.client.put(resourceQuotas, {
    ...aQuota({ "count/configmaps": "3" }),
    metadata: { namespace: "default", name: "r", uid: "r" },
  });
  await settle(60);
  assert.equal(world.clock.waiting, before);
});

test("a name that two resources consume is the sum of both", () => {
  const evaluator = (amount: string): QuotaEvaluator =>
    ({ matching: () => ["requests.storage"], inScope: () => true, usage: () => ({ "requests.storage": amount }) }) as never;
  const counted = [
    { evaluator: evaluator("1"), objects: [{ metadata: {} }] },
    { evaluator: evaluator("2"), objects: [{ metadata: {} }] },
  ];
  assert.deepEqual(usageOf({ hard: { "requests.storage": "5" } }, counted), { "requests.storage": "3" });
});

test("a quota whose usage was never computed does not wait behind computed ones whose writes hang", async (t) => {
  const computed = (name: string): ResourceQuota & KubeObject => ({
    ...aQuota({ pods: "10" }),
    metadata: { namespace: "default", name, uid: name },
    status: { hard: { pods: "10" }, used: { pods: "7" } },
  });
  const world = await started(t, ({ client, ctx }) => {
    for (let i = 0; i < ctx.config.concurrency.resourceQuota; i++) client.put(resourceQuotas, computed(`slow-${i}`));
    client.react("update", "resourcequotas", ({ name }) => (name.startsWith("slow") ? new Promise(() => {}) : undefined));
  });
  world.client.put(resourceQuotas, computed("behind"));
  await settle(60);
  const usedOf = (name: string) =>
    world.client.object<ResourceQuota & KubeObject>(resourceQuotas, `default/${name}`)?.status?.used;
  assert.deepEqual(usedOf("behind"), { pods: "7" }, "all workers of computed quotas are busy");
  world.client.put(resourceQuotas, aQuota({ pods: "10" }));
  await settle(60);
  assert.deepEqual(usedOf("q"), { pods: "0" });
});

test("objects that come while the usage is computed in turns are counted", async (t) => {
  let world: TestContext | undefined;
  let pauses = 0;
  const next = (): Promise<void> | undefined => {
    if (world === undefined || pauses >= 6) return undefined;
    world.client.put(pods, asking(`late-${++pauses}`, "1"));
    return settle(10);
  };
  const turns = Object.create(newUnlimitedTurns(), { next: { value: next } }) as Turns;
  world = await started(t, ({ client }) => client.put(pods, asking("a", "1"), asking("b", "1")), turns);
  world.client.put(resourceQuotas, aQuota({ pods: "50" }));
  await settle(200);
  assert.ok(pauses >= 3, `${pauses} pauses`);
  assert.deepEqual(statusIn(world)?.used, { pods: String(2 + pauses) });
});

test("a deleted pod is released from each quota of its namespace that counts pods", async (t) => {
  const named = (name: string, namespace = "default") => ({
    ...aQuota({ pods: "10" }),
    metadata: { namespace, name, uid: `${namespace}-${name}` },
  });
  const world = await started(t, ({ client }) => {
    client.put(pods, aPod({ name: "a" }), aPod({ name: "b" }));
    client.put(resourceQuotas, named("q"), named("r"));
  });
  const used = () =>
    ["q", "r"].map((name) => world.client.object<ResourceQuota & KubeObject>(resourceQuotas, `default/${name}`)?.status?.used);
  assert.deepEqual(used(), [{ pods: "2" }, { pods: "2" }]);
  world.client.remove(pods, "default/a");
  await settle(60);
  assert.deepEqual(used(), [{ pods: "1" }, { pods: "1" }]);
});

test("a resource of a group that cannot be discovered for a while is counted all the same", async (t) => {
  const ofGroup = { resources: [{ name: "configmaps", kind: "ConfigMap", namespaced: true, verbs }] };
  const world = await started(t, ({ client }) => {
    client.rawAnswers.set("/apis", { groups: [{ name: "example.com", versions: [{ version: "v1" }] }] });
    client.rawAnswers.set("/apis/example.com/v1", ofGroup);
    client.rawAnswers.set("/api/v1", core("pods"));
    client.put(resourceQuotas, aQuota({ "count/configmaps.example.com": "3" }));
  });
  const counted = () => statusIn(world)?.used?.["count/configmaps.example.com"];
  assert.equal(counted(), "0");
  world.client.rawAnswers.set("/apis/example.com/v1", "not a list");
  await world.clock.advance(31_000);
  world.client.put({ ...configMaps, group: "example.com" }, { metadata: { namespace: "default", name: "x" } });
  await world.clock.advance(300_000);
  await settle(60);
  assert.equal(counted(), "1");
});

test("what was counted of a resource that is no longer served stays", async (t) => {
  const status = { hard: { pods: "9", "count/configmaps": "3" }, used: { pods: "5", "count/configmaps": "2" } };
  const world = await started(t, ({ client }) => {
    client.rawAnswers.set("/api/v1", core("pods"));
    client.put(resourceQuotas, { ...aQuota(status.hard), status });
  });
  assert.deepEqual(statusIn(world)?.used, { pods: "0", "count/configmaps": "2" });
});

test("a resource that is served in another version is watched in that one", async (t) => {
  const serve = ({ rawAnswers }: TestContext["client"], version: string): void => {
    rawAnswers.set("/apis", { groups: [{ name: "example.com", versions: [{ version }] }] });
    rawAnswers.set(`/apis/example.com/${version}`, {
      resources: [{ name: "configmaps", kind: "ConfigMap", namespaced: true, verbs }],
    });
  };
  const world = await started(t, ({ client }) => {
    serve(client, "v1");
    client.rawAnswers.set("/api/v1", core("pods"));
    client.put(resourceQuotas, aQuota({ "count/configmaps.example.com": "3" }));
  });
  const watches = () => world.client.actions.filter(({ verb, resource }) => verb === "watch" && resource === "configmaps").length;
  assert.equal(watches(), 1);
  await world.clock.advance(31_000);
  await settle(60);
  assert.equal(watches(), 1);
  serve(world.client, "v2");
  await world.clock.advance(31_000);
  await settle(60);
  assert.equal(watches(), 2);
});

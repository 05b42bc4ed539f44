/** Charges of concurrent writes: batches, conflicts with other writers, failures midway, and a cache that lags behind. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { conflict, internalError, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { quotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { Charges } from "./quota-charges.ts";
import type { QuotaObject } from "./quota-cost.ts";

const resource = { group: "", version: "v1", resource: "configmaps" };
const quota = (name: string, hard: number, used: number, namespace = "web"): QuotaObject => ({
  metadata: { name, namespace },
  status: { hard: { configmaps: String(hard) }, used: { configmaps: String(used) } },
});

const status = (used: number) => ({ status: quota("", 9, used).status });

async function charging(t: TestContext, ...quotas: QuotaObject[]) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  client.put(resourceQuotas, ...quotas);
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const charges = new Charges({ informers, client } as Partial<PluginContext> as PluginContext);
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  await informers.waitForSync(end.signal);
  const informer = informers.for<QuotaObject>(resourceQuotas);
  const evaluator = quotaEvaluator(resource, clock, () => false);
  const admit = (known: readonly QuotaObject[] = informer.lister.list(), changes: Partial<AdmissionAttributes> = {}) => {
    const object = { metadata: { name: "a" } };
    const attributes = { operation: "CREATE", namespace: "web", name: "a", resource, object, dryRun: false, ...changes };
    return charges.charge(attributes as AdmissionAttributes, evaluator, known).then(
      () => "charged",
      (err: Error) => err.message,
    );
  };
  const used = (name: string, namespace = "web") =>
    Number(client.object<QuotaObject>(resourceQuotas, `${namespace}/${name}`)?.status?.used?.["configmaps"]);
  const seen = (name: string, count: number) =>
    waitFor(() => informer.lister.get(`web/${name}`)?.status?.used?.["configmaps"] === String(count), { what: "the cache" });
  const updates = () => client.writes.map(({ namespace, name }) => `${namespace}/${name}`);
  return { client, informer, admit, used, seen, updates };
}

test("requests that arrive during a quota write are charged together and refused individually", async (t) => {
  const { admit, used, updates } = await charging(t, quota("q", 3, 0));
  const answers = await Promise.all(Array.from({ length: 5 }, () => admit()));
  assert.deepEqual(answers.slice(0, 3), ["charged", "charged", "charged"]);
  for (const answer of answers.slice(3)) assert.match(answer, /exceeded quota: q, requested: configmaps=1, used: configmaps=3/);
  assert.deepEqual([used("q"), updates()], [3, ["web/q", "web/q"]]);
});

test("a charge is made on what was written last, not on what the cache still shows", async (t) => {
  const { admit, used, informer, seen, client } = await charging(t, quota("q", 2, 0));
  const stale = informer.lister.list();
  assert.deepEqual([await admit(stale), await admit(stale)], ["charged", "charged"]);
  assert.match(await admit(stale), /exceeded quota/);
  await seen("q", 2);
  // The cache shows an amount that another writer has released: it is available again.
  client.put(resourceQuotas, { ...(client.object<QuotaObject>(resourceQuotas, "web/q") as QuotaObject), ...quota("q", 2, 1) });
  await seen("q", 1);
  assert.equal(await admit(), "charged");
  assert.equal(used("q"), 2);
});

test("a quota that was recreated under its name is not confused with the previous one", async (t) => {
  const { admit, used, seen, client, informer } = await charging(t, quota("q", 1, 0));
  assert.equal(await admit(), "charged");
  await seen("q", 1);
  client.remove(resourceQuotas, "web/q");
  await waitFor(() => informer.lister.list().length === 0, { what: "the deletion" });
  client.put(resourceQuotas, { ...quota("q", 1, 0), metadata: { name: "q", namespace: "web", uid: "another" } });
  await seen("q", 0);
  assert.equal(await admit(), "charged");
  assert.equal(used("q"), 1);
});

test("of two quotas the one that another writer changed is charged again, the other once", async (t) => {
  const { admit, used, updates, client } = await charging(t, quota("a", 9, 0), quota("b", 9, 0));
  let first = true;
  client.react("update", "resourcequotas", ({ name }) => {
    if (name !== "a" || !first) return undefined;
    first = false;
    client.put(resourceQuotas, quota("a", 9, 5));
    throw conflict(resourceQuotas, "a", "changed");
  });
  assert.equal(await admit(), "charged");
  assert.deepEqual([used("a"), used("b"), updates()], [6, 1, ["web/a", "web/b", "web/a"]]);
});

test("a retry after a conflict refuses a request when another writer has used up the quota", async (t) => {
  const { admit, used, client } = await charging(t, quota("a", 5, 0));
  client.react("update", "resourcequotas", () => {
    client.put(resourceQuotas, quota("a", 5, 5));
    throw conflict(resourceQuotas, "a", "changed");
  });
  assert.match(await admit(), /exceeded quota: a, requested: configmaps=1, used: configmaps=5/);
  assert.equal(used("a"), 5);
});

test("a quota that is deleted while it is charged bounds nothing", async (t) => {
  const { admit, client } = await charging(t, quota("a", 5, 0));
  client.react("update", "resourcequotas", () => {
    client.remove(resourceQuotas, "web/a");
    throw notFound(resourceQuotas, "a");
  });
  assert.equal(await admit(), "charged");
});

test("a quota that always changes fails after eleven attempts, for all waiting requests", async (t) => {
  const { admit, updates, client } = await charging(t, quota("a", 5, 0));
  client.react("update", "resourcequotas", () => {
    throw conflict(resourceQuotas, "a", "changed");
  });
  assert.match(await admit(), /resource quota evaluation timed out/);
  assert.equal(updates().length, 11);
});

test("requests that wait together time out together and are checked against the quotas that the last one knew", async (t) => {
  const { admit, used, client } = await charging(t, quota("a", 5, 0), quota("b", 5, 0));
  const all = ["a", "b"].map((name) => client.object<QuotaObject>(resourceQuotas, `web/${name}`) as QuotaObject);
  assert.deepEqual(await Promise.all([admit(all), admit(all.slice(0, 1)), admit(all)]), ["charged", "charged", "charged"]);
  assert.deepEqual([used("a"), used("b")], [3, 3]);
  client.react("update", "resourcequotas", () => {
    throw conflict(resourceQuotas, "a", "changed");
  });
  for (const answer of await Promise.all([admit(all), admit(all), admit(all)])) assert.match(answer, /evaluation timed out/);
});

test("a quota that cannot be written or read is the answer of the requesters; the next one is charged", async (t) => {
  const { admit, used, client } = await charging(t, quota("a", 5, 0));
  let failures = 0;
  client.react("update", "resourcequotas", () => {
    if (failures++ === 0) throw internalError(new Error("etcd is away"));
    return undefined;
  });
  const [first, second] = await Promise.all([admit(), admit()]);
  assert.deepEqual([/etcd is away/.test(first), second, used("a")], [true, "charged", 1]);
  assert.equal(await admit(), "charged");
  client.react("update", "resourcequotas", () => {
    throw conflict(resourceQuotas, "a", "changed");
  });
  client.react("get", "resourcequotas", () => {
    throw internalError(new Error("no answer"));
  });
  assert.match(await admit(), /no answer/);
});

test("namespaces do not wait for each other, and each has its own queue", async (t) => {
  const { admit, used, client } = await charging(t, quota("q", 5, 0), quota("q", 5, 0, "db"));
  const held = Promise.withResolvers<void>();
  client.react("update", "resourcequotas", ({ namespace }) =>
    namespace === "web" ? held.promise.then(() => quota("q", 5, 1)) : undefined,
  );
  const web = admit([client.object<QuotaObject>(resourceQuotas, "web/q") as QuotaObject]);
  const inDb = [client.object<QuotaObject>(resourceQuotas, "db/q") as QuotaObject];
  assert.equal(await admit(inDb, { namespace: "db" }), "charged");
  assert.deepEqual([used("q", "db"), used("q")], [1, 0]);
  held.resolve();
  assert.equal(await web, "charged");
});

test("a dry run among others is checked on what they take, and takes nothing", async (t) => {
  const { admit, used, updates } = await charging(t, quota("q", 1, 0));
  assert.equal(await admit(undefined, { dryRun: true }), "charged");
  assert.deepEqual([used("q"), updates()], [0, []]);
  const first = admit();
  const [dry, real] = [admit(undefined, { dryRun: true }), admit()];
  assert.equal(await first, "charged");
  for (const answer of [await dry, await real]) assert.match(answer, /exceeded quota/);
  assert.equal(used("q"), 1);
});

test("a refused request is not charged when the batch of the others is retried", async (t) => {
  const { admit, used, client } = await charging(t, quota("a", 2, 0));
  let updates = 0;
  client.react("update", "resourcequotas", () => {
    if (++updates !== 2) return undefined;
    client.put(resourceQuotas, quota("a", 9, 1)); // another writer raises the limit
    throw conflict(resourceQuotas, "a", "changed");
  });
  const answers = await Promise.all([admit(), admit(), admit()]);
  assert.deepEqual(answers.slice(0, 2), ["charged", "charged"]);
  assert.match(answers[2] ?? "", /exceeded quota/);
  assert.equal(used("a"), 2);
});

test("a failure of a batch is the answer of all in it", async (t) => {
  const { admit, client } = await charging(t, quota("a", 9, 0));
  let updates = 0;
  client.react("update", "resourcequotas", () => {
    if (++updates === 2) throw internalError(new Error("etcd is away"));
    return undefined;
  });
  const answers: string[] = [];
  for (let i = 0; i < 3; i++) void admit().then((answer) => answers.push(answer));
  await waitFor(() => answers.length === 3, { what: "three answers", timeoutMs: 10_000 });
  const [first, ...rest] = answers;
  assert.equal(first, "charged");
  for (const answer of rest) assert.match(answer, /etcd is away/);
});

test("a quota written here is used until the cache shows it or a newer one, and not after its write was lost", async (t) => {
  const { admit, client, informer, seen } = await charging(t, quota("a", 9, 0));
  const stale = informer.lister.list();
  const sent: unknown[] = [];
  const answers = [(own: QuotaObject) => ({ ...own, metadata: { ...own.metadata, resourceVersion: "1000" } }), () => undefined];
  client.react("update", "resourcequotas", (action) => {
    const own = action.sent as QuotaObject;
    sent.push(own.status?.used?.["configmaps"]);
    const answer = answers.shift()?.(own);
    if (answer !== undefined) return answer;
    client.put(resourceQuotas, { ...quota("a", 9, 9), metadata: { ...own.metadata } });
    throw conflict(resourceQuotas, "a", "changed");
  });
  assert.equal(await admit(stale), "charged");
  // The event of an earlier write arrives late.
  client.put(resourceQuotas, { ...(client.object<QuotaObject>(resourceQuotas, "web/a") as QuotaObject), ...status(5) });
  await seen("a", 5);
  assert.match(await admit(stale), /exceeded quota/);
  await seen("a", 9);
  assert.match(await admit(stale), /exceeded quota/);
  assert.deepEqual(sent, ["1", "2"], "the last one is refused by what the cache shows, without a write");
});

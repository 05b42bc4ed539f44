import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isAlreadyExists,
  isConflict,
  isNotFound,
  isResourceExpired,
  reasonOf,
} from "@coxswain/apimachinery/objects/errors/predicates";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Entry, Storage, WatchEvent } from "./storage.ts";
import { aConfigMap, type ConfigMap, follow, keys, shapes, withData } from "./testing.ts";

/**
 * Behaviour required of every `Storage`; run against each implementation over a real etcd.
 * @param open opens a fresh storage of `suiteResource` with its own key prefix
 */
export interface StorageUnderTest {
  storage: Storage;
  /** The underlying store, or the same storage: for writes that the storage under test only sees through its watch. */
  behind: Storage;
  /** Compacts etcd at its current revision. */
  compact(): Promise<number>;
}

type OpenStorage = (t: { after(fn: () => void | Promise<void>): void }) => Promise<StorageUnderTest>;

/** Registers the tests. @param open opens a fresh storage for each test */
export function runStorageSuite(name: string, open: OpenStorage): void {
  const suite: Suite = (what, run) => {
    test(`${name}: ${what}`, async (t) => run(await open(t)));
  };

  const parts = [creates, updates, deletions, lists, listsOfRevisions, watches, selectingWatches, races, staleSuggestions, ends];
  for (const part of parts) part(suite);
}

type Suite = (what: string, run: (t: StorageUnderTest) => Promise<void>) => void;

/** Creates and reads. */
function creates(suite: Suite): void {
  suite("create answers the object with its revision, and get finds it", async ({ storage }) => {
    const created = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    assert.equal(created.object().metadata.resourceVersion, String(created.revision));
    const found = await storage.get("web/a");
    assert.equal(found?.revision, created.revision);
    assert.deepEqual(found?.object(), created.object());
    const json = JSON.parse(String(found?.json()));
    assert.deepEqual([json.kind, json.apiVersion, json.metadata.resourceVersion], ["ConfigMap", "v1", String(created.revision)]);
    assert.equal(await storage.get("web/b"), undefined);
  });

  suite("keys such as __proto__ survive", async ({ storage }) => {
    const data = JSON.parse('{"__proto__":"x","constructor":"y"}') as Record<string, string>;
    await storage.create("web/a", aConfigMap("a", data));
    const found = (await storage.get("web/a"))?.object() as ConfigMap;
    assert.deepEqual(Object.entries(found.data ?? {}).sort(), [
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
  });

  suite("create refuses a key that is taken", async ({ storage }) => {
    await storage.create("web/a", aConfigMap("a"));
    await assert.rejects(
      storage.create("web/a", aConfigMap("a")),
      (err) => isAlreadyExists(err) && /configmaps "a" already exists/.test(String(err)),
    );
    await assert.rejects(storage.create("web/a", aConfigMap("a"), { dryRun: true }), isAlreadyExists);
  });

  suite("a dry-run writes nothing and answers as if it had", async ({ storage }) => {
    assert.equal((await storage.create("web/a", aConfigMap("a"), { dryRun: true })).object().metadata.name, "a");
    assert.equal(await storage.get("web/a"), undefined);
    const created = await storage.create("web/a", aConfigMap("a"));
    const updated = await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }), { dryRun: true });
    assert.equal((updated.object() as ConfigMap)?.data?.["color"], "blue");
    await storage.delete("web/a", { dryRun: true });
    assert.equal((await storage.get("web/a"))?.revision, created.revision);
  });

  suite("get with a revision that is not there yet fails with Too large resource version", async ({ storage }) => {
    const { revision } = await storage.create("web/a", aConfigMap("a"));
    assert.equal((await storage.get("web/a", { minimumRevision: revision }))?.revision, revision);
    await assert.rejects(
      storage.get("web/a", { minimumRevision: revision + 1000 }),
      (err) => err instanceof StatusError && err.code === 504 && /Too large resource version/.test(err.message),
    );
  });

  suite("a read sees what was written before it, also by others", async ({ storage, behind }) => {
    for (let i = 0; i < 50; i++) {
      const { revision } = await behind.create(`web/p${i}`, aConfigMap(`p${i}`));
      assert.equal((await storage.get(`web/p${i}`))?.revision, revision);
      const listed = await storage.list({ prefix: "web/" });
      assert.equal(listed.entries.length, i + 1);
      assert.ok(listed.revision >= revision);
    }
  });
}

/** Updates. */
function updates(suite: Suite): void {
  suite("guaranteedUpdate writes the change and counts the revision up", async ({ storage }) => {
    const created = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    const updated = await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }));
    assert.ok(updated.revision > created.revision);
    assert.equal(((await storage.get("web/a"))?.object() as ConfigMap)?.data?.["color"], "blue");
  });

  suite("an update that changes nothing writes nothing", async ({ storage }) => {
    const created = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    const same = await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "red" }));
    assert.equal(same.revision, created.revision);
    assert.equal((await storage.guaranteedUpdate("web/a", (e) => (e as Entry).object())).revision, created.revision);
  });

  suite("an update of what is absent is NotFound, or makes it on request", async ({ storage }) => {
    await assert.rejects(
      storage.guaranteedUpdate("web/a", () => aConfigMap("a")),
      isNotFound,
    );
    const made = await storage.guaranteedUpdate("web/a", (e) => (e === undefined ? aConfigMap("a") : e.object()), {
      ignoreNotFound: true,
    });
    assert.equal((await storage.get("web/a"))?.revision, made.revision);
  });

  suite("an update starts over when another writer was first", async ({ storage, behind }) => {
    await storage.create("web/a", aConfigMap("a", { color: "red" }));
    let runs = 0;
    const updated = await storage.guaranteedUpdate("web/a", async (e) => {
      if (++runs === 1) await behind.guaranteedUpdate("web/a", (now) => withData(now, { other: "1" }));
      return withData(e, { color: "blue" });
    });
    assert.equal(runs, 2);
    assert.deepEqual({ ...(updated.object() as ConfigMap).data }, { color: "blue", other: "1" });
  });

  suite("a refusal by a stale suggestion does not count", async ({ storage }) => {
    const stale = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    const now = await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }));
    const updated = await storage.guaranteedUpdate(
      "web/a",
      (e) => {
        if (e?.revision !== now.revision) throw new Error("refused");
        return withData(e, { color: "green" });
      },
      { suggestion: stale },
    );
    assert.equal((updated.object() as ConfigMap)?.data?.["color"], "green");
    await assert.rejects(
      storage.guaranteedUpdate("web/a", () => {
        throw new Error("refused");
      }),
      /refused/,
    );
  });

  suite("counting writers lose no update", async ({ storage, behind }) => {
    await storage.create("web/a", aConfigMap("a", { n: "0" }));
    const bump = (e: Entry | undefined): KubeObject =>
      withData(e, { n: String(Number((e?.object() as ConfigMap)?.data?.["n"]) + 1) });
    await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? storage : behind).guaranteedUpdate("web/a", bump)));
    assert.equal(((await storage.get("web/a"))?.object() as ConfigMap)?.data?.["n"], "40");
  });
}

/** Preconditions and deletions. */
function deletions(suite: Suite): void {
  suite("preconditions that fail are a Conflict", async ({ storage }) => {
    const { revision } = await storage.create("web/a", aConfigMap("a"));
    const text =
      /Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: .*\/configmaps\/web\/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: uid-of-a/;
    for (const attempt of [
      () => storage.guaranteedUpdate("web/a", (e) => withData(e, { x: "1" }), { preconditions: { uid: "other" } }),
      () => storage.delete("web/a", { preconditions: { uid: "other" } }),
    ]) {
      await assert.rejects(attempt(), (err) => isConflict(err) && text.test(String(err)));
    }
    await assert.rejects(storage.delete("web/a", { preconditions: { resourceVersion: "1" } }), isConflict);
    await storage.delete("web/a", { preconditions: { uid: "uid-of-a", resourceVersion: String(revision) } });
  });

  suite("delete answers the last state, and validate can refuse", async ({ storage }) => {
    const created = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    await assert.rejects(
      storage.delete("web/a", {
        validate: () => {
          throw new Error("keep it");
        },
      }),
      /keep it/,
    );
    const gone = await storage.delete("web/a");
    assert.ok(gone.revision > created.revision);
    assert.equal((gone.object() as ConfigMap)?.data?.["color"], "red");
    await assert.rejects(storage.delete("web/a"), isNotFound);
    assert.equal(await storage.get("web/a"), undefined);
  });
}

/** Lists, their selectors and pages. */
function lists(suite: Suite): void {
  suite("list is in key order, by namespace, and selects by label and field", async ({ storage }) => {
    await storage.create("web/b", aConfigMap("b", { color: "red" }, { app: "x" }));
    await storage.create("web/a", aConfigMap("a", { color: "blue" }, { app: "y" }));
    await storage.create("db/c", aConfigMap("c", { color: "red" }, { app: "x" }, "db"));
    await storage.create("web-2/d", aConfigMap("d", {}, {}, "web-2"));
    for (const { request, want } of [
      { request: { prefix: "" }, want: ["db/c", "web-2/d", "web/a", "web/b"] },
      { request: { prefix: "web/" }, want: ["web/a", "web/b"] },
      { request: { prefix: "web/a" }, want: ["web/a"] },
      { request: { prefix: "web/none" }, want: [] },
      { request: { prefix: "", labels: LabelSelector.parse("app=x") }, want: ["db/c", "web/b"] },
      { request: { prefix: "web/", fields: FieldSelector.parse("data.color=red") }, want: ["web/b"] },
      { request: { prefix: "web/a", fields: FieldSelector.parse("metadata.name=b") }, want: [] },
    ]) {
      for (const revision of [undefined, await storage.currentRevision()]) {
        assert.deepEqual(keys((await storage.list({ ...request, revision })).entries), want);
      }
    }
  });

  suite("pages are of one revision whatever is written between them", async ({ storage }) => {
    for (const name of ["a", "b", "c", "d", "e"]) await storage.create(`web/${name}`, aConfigMap(name, { color: "red" }));
    const first = await storage.list({ prefix: "web/", limit: 2 });
    assert.deepEqual([keys(first.entries), first.remainingItemCount], [["web/a", "web/b"], 3]);
    await storage.delete("web/c");
    await storage.create("web/aa", aConfigMap("aa"));
    await storage.create("web/cc", aConfigMap("cc"));
    await storage.guaranteedUpdate("web/d", (e) => withData(e, { color: "blue" }));
    const second = await storage.list({ prefix: "web/", limit: 2, continueToken: token(first) });
    assert.deepEqual([keys(second.entries), second.revision, second.remainingItemCount], [["web/c", "web/d"], first.revision, 1]);
    assert.equal((second.entries[1]?.object() as ConfigMap)?.data?.["color"], "red");
    const third = await storage.list({ prefix: "web/", limit: 2, continueToken: token(second) });
    assert.deepEqual([keys(third.entries), third.continueToken, third.remainingItemCount], [["web/e"], undefined, undefined]);
  });

  suite("pages with a selector hold limit matches and no count", async ({ storage }) => {
    for (let i = 0; i < 6; i++) await storage.create(`web/p${i}`, aConfigMap(`p${i}`, {}, { odd: String(i % 2) }));
    const labels = LabelSelector.parse("odd=1");
    const first = await storage.list({ prefix: "web/", limit: 2, labels });
    assert.deepEqual([keys(first.entries), first.remainingItemCount], [["web/p1", "web/p3"], undefined]);
    const second = await storage.list({ prefix: "web/", limit: 2, labels, continueToken: token(first) });
    assert.deepEqual([keys(second.entries), second.continueToken], [["web/p5"], undefined]);
  });
}

/** Lists of given revisions, and tokens. */
function listsOfRevisions(suite: Suite): void {
  suite("an exact list of the past shows the past", async ({ storage }) => {
    const a = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }));
    const b = await storage.create("web/b", aConfigMap("b"));
    const past = await storage.list({ prefix: "", revision: a.revision, match: "Exact" });
    assert.deepEqual([keys(past.entries), past.revision], [["web/a"], a.revision]);
    assert.equal((past.entries[0]?.object() as ConfigMap)?.data?.["color"], "red");
    const paged = await storage.list({ prefix: "", revision: a.revision, limit: 5 });
    assert.deepEqual([keys(paged.entries), paged.revision], [["web/a"], a.revision]);
    const newer = await storage.list({ prefix: "", revision: b.revision, match: "NotOlderThan", limit: 5 });
    assert.deepEqual(keys(newer.entries), ["web/a", "web/b"]);
  });

  suite("a list of one object shows the past when it is to be exact, else what is there", async ({ storage }) => {
    const before = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    const after = await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }));
    for (const { request, want } of [
      { request: { match: "Exact" }, want: before },
      { request: { limit: 1 }, want: before },
      { request: { match: "NotOlderThan" }, want: after },
      { request: { match: "NotOlderThan", limit: 1 }, want: after },
      { request: {}, want: after },
    ] as const) {
      const { entries } = await storage.list({ prefix: "web/a", revision: before.revision, ...request });
      assert.deepEqual([keys(entries), entries[0]?.revision], [["web/a"], want.revision], JSON.stringify(request));
    }
  });

  suite("a list of a future revision fails with Too large resource version", async ({ storage }) => {
    const { revision } = await storage.create("web/a", aConfigMap("a"));
    for (const match of ["Exact", "NotOlderThan"] as const) {
      await assert.rejects(
        storage.list({ prefix: "", revision: revision + 1000, match }),
        (err) => err instanceof StatusError && err.code === 504 && /Too large resource version/.test(err.message),
      );
    }
  });

  suite("a token that is none is a BadRequest", async ({ storage }) => {
    for (const bad of [
      "%%%",
      "abc",
      Buffer.from('{"v":"meta.k8s.io/v1","rv":5,"start":"../../secrets/x"}').toString("base64url"),
    ]) {
      await assert.rejects(
        storage.list({ prefix: "web/", limit: 1, continueToken: bad }),
        (err) => reasonOf(err) === "BadRequest",
      );
    }
  });
}

/** Watches from the start or a revision. */
function watches(suite: Suite): void {
  suite("a watch from a revision shows every later change once, in order", async ({ storage }) => {
    const a = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    const watch = await follow(storage, { prefix: "", revision: a.revision });
    await storage.create("web/b", aConfigMap("b"));
    await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }));
    const gone = await storage.delete("web/b");
    const events = await watch.next(3);
    assert.deepEqual(shapes(events), ["ADDED web/b", "MODIFIED web/a", "DELETED web/b"]);
    assert.equal((events[2] as { entry: Entry }).entry.revision, gone.revision);
    assert.equal((events[2] as { entry: Entry }).entry.object().metadata.resourceVersion, String(gone.revision));
    watch.stop();
  });

  suite("a watch resumes without a hole from any of its events", async ({ storage }) => {
    const start = await storage.currentRevision();
    for (let i = 0; i < 10; i++) await storage.create(`web/p${i}`, aConfigMap(`p${i}`));
    let revision = start;
    const seen: string[] = [];
    while (seen.length < 10) {
      const watch = await follow(storage, { prefix: "", revision });
      const [event] = await watch.next(1);
      watch.stop();
      seen.push(...shapes([event as WatchEvent]));
      revision = (event as { entry: Entry }).entry.revision;
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 10 }, (_, i) => `ADDED web/p${i}`),
    );
  });

  for (const revision of [undefined, 0]) {
    suite(`a watch from ${revision} begins with the present state`, async ({ storage }) => {
      await storage.create("web/b", aConfigMap("b"));
      await storage.create("web/a", aConfigMap("a"));
      await storage.get("web/a"); // the cache has caught up, so that 0 includes the write
      const watch = await follow(storage, { prefix: "web/", revision });
      assert.deepEqual(shapes(await watch.next(2)), ["ADDED web/a", "ADDED web/b"]);
      await storage.create("web/c", aConfigMap("c"));
      assert.deepEqual(shapes(await watch.next(1)), ["ADDED web/c"]);
      watch.stop();
    });
  }
}

/** Watches that select. */
function selectingWatches(suite: Suite): void {
  for (const revision of [undefined, 0]) {
    suite(`a selecting watch from ${revision} begins with what matches alone`, async ({ storage }) => {
      await storage.create("web/a", aConfigMap("a", { color: "red" }, { app: "x" }));
      await storage.create("web/b", aConfigMap("b", { color: "red" }, { app: "y" }));
      await storage.create("web/c", aConfigMap("c", { color: "blue" }, { app: "x" }));
      await storage.create("web/d", aConfigMap("d", { color: "red" }, { app: "x" }));
      await storage.get("web/d");
      const labels = LabelSelector.parse("app=x");
      const fields = FieldSelector.parse("data.color=red");
      for (const { request, want } of [
        { request: { labels }, want: ["a", "c", "d"] },
        { request: { fields }, want: ["a", "b", "d"] },
        { request: { labels, fields }, want: ["a", "d"] },
      ]) {
        const watch = await follow(storage, { prefix: "web/", revision, ...request });
        assert.deepEqual(
          shapes(await watch.next(want.length)),
          want.map((name) => `ADDED web/${name}`),
        );
        assert.deepEqual(watch.stream.take(), []);
        watch.stop();
      }
    });
  }

  suite("a selecting watch sees objects come and go", async ({ storage }) => {
    const revision = await storage.currentRevision();
    const byField = await follow(storage, { prefix: "web/", revision, fields: FieldSelector.parse("data.color=red") });
    const byLabel = await follow(storage, { prefix: "", revision, labels: LabelSelector.parse("app=x") });
    await storage.create("web/a", aConfigMap("a", { color: "blue" }, { app: "x" }));
    await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "red" }));
    await storage.guaranteedUpdate("web/a", (e) => withData(e, { size: "2" }));
    const left = await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "green" }));
    await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "red" }));
    await storage.delete("web/a");
    const seen = await byField.next(5);
    assert.deepEqual(shapes(seen), ["ADDED web/a", "MODIFIED web/a", "DELETED web/a", "ADDED web/a", "DELETED web/a"]);
    const lost = (seen[2] as { entry: Entry }).entry;
    assert.deepEqual([lost.revision, (lost.object() as ConfigMap)?.data?.["color"]], [left.revision, "red"]);
    assert.deepEqual(shapes(await byLabel.next(6)), ["ADDED web/a", ...Array(4).fill("MODIFIED web/a"), "DELETED web/a"]);
    byField.stop();
    byLabel.stop();
  });

  suite("a watch of one namespace or one object sees nothing else", async ({ storage }) => {
    const revision = await storage.currentRevision();
    const namespace = await follow(storage, { prefix: "web/", revision });
    const single = await follow(storage, { prefix: "web/b", revision });
    await storage.create("db/a", aConfigMap("a", {}, {}, "db"));
    await storage.create("web/b", aConfigMap("b"));
    await storage.create("web/bb", aConfigMap("bb"));
    await storage.delete("web/b");
    assert.deepEqual(shapes(await namespace.next(3)), ["ADDED web/b", "ADDED web/bb", "DELETED web/b"]);
    assert.deepEqual(shapes(await single.next(2)), ["ADDED web/b", "DELETED web/b"]);
    namespace.stop();
    single.stop();
  });

  suite("a watch ends when its signal aborts", async ({ storage }) => {
    const controller = new AbortController();
    const stream = await storage.watch({ prefix: "", signal: controller.signal });
    const ready = stream.ready();
    controller.abort();
    assert.equal(await ready, false);
    assert.equal(await stream.ready(), false);
  });
}

/** Writers that lose races. */
function races(suite: Suite): void {
  for (const { what, preconditions } of [
    { what: "uid", preconditions: (_: number) => ({ uid: "uid-of-a" }) },
    { what: "version", preconditions: (revision: number) => ({ resourceVersion: String(revision) }) },
  ]) {
    suite(`the ${what} of a precondition is compared again after a lost race, by updates and deletions`, async ({
      storage,
      behind,
    }) => {
      const { revision } = await storage.create("web/a", aConfigMap("a"));
      const replace = async (): Promise<void> => {
        await behind.delete("web/a");
        await behind.create("web/a", { ...aConfigMap("a"), metadata: { name: "a", namespace: "web", uid: "another" } });
      };
      let runs = 0;
      const change = async (e: Entry | undefined): Promise<KubeObject> => {
        if (++runs === 1) await replace();
        return withData(e, { color: "blue" });
      };
      await assert.rejects(storage.guaranteedUpdate("web/a", change, { preconditions: preconditions(revision) }), isConflict);
      const now = await storage.get("web/a");
      assert.deepEqual([runs, now?.object().metadata.uid], [1, "another"]);
      const own = what === "uid" ? { uid: "another" } : preconditions(now?.revision as number);
      let looks = 0;
      const validate = async (): Promise<void> => {
        if (++looks === 1) await behind.guaranteedUpdate("web/a", (e) => ({ ...withData(e, { size: "1" }), ...third }));
      };
      const third = { metadata: { name: "a", namespace: "web", uid: "third" } };
      await assert.rejects(storage.delete("web/a", { preconditions: own, validate }), isConflict);
      assert.notEqual(await storage.get("web/a"), undefined);
    });
  }

  suite("a deletion that loses a race looks at the fresh object before it continues", async ({ storage, behind }) => {
    await storage.create("web/a", aConfigMap("a", { n: "0" }));
    const seen: unknown[] = [];
    const gone = await storage.delete("web/a", {
      validate: async (present) => {
        seen.push((present.object() as ConfigMap).data?.["n"]);
        if (seen.length === 1) await behind.guaranteedUpdate("web/a", (e) => withData(e, { n: "1" }));
      },
    });
    assert.deepEqual(seen, ["0", "1"]);
    assert.equal((gone.object() as ConfigMap).data?.["n"], "1");
    await storage.create("web/b", aConfigMap("b"));
    const twice = storage.delete("web/b", { validate: async () => void (await behind.delete("web/b").catch(() => {})) });
    await assert.rejects(twice, isNotFound);
  });

  suite("an update of what is deleted under it is NotFound, or makes it anew on request", async ({ storage, behind }) => {
    for (const ignoreNotFound of [false, true]) {
      await storage.create("web/a", aConfigMap("a"));
      const seen: boolean[] = [];
      const change = async (e: Entry | undefined): Promise<KubeObject> => {
        if (seen.push(e !== undefined) === 1) await behind.delete("web/a");
        return e === undefined ? aConfigMap("a") : withData(e, { color: "blue" });
      };
      const update = storage.guaranteedUpdate("web/a", change, { ignoreNotFound });
      if (!ignoreNotFound) await assert.rejects(update, isNotFound);
      else assert.deepEqual([(await update).object().metadata.name, seen], ["a", [true, false]]);
    }
  });
}

/** Stale suggestions, and a writer that is aborted. */
function staleSuggestions(suite: Suite): void {
  suite("a stale suggestion whose change is none is looked at again", async ({ storage }) => {
    const stale = await storage.create("web/a", aConfigMap("a", { color: "red" }));
    await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "blue" }));
    const updated = await storage.guaranteedUpdate("web/a", (e) => withData(e, { color: "red" }), { suggestion: stale });
    assert.equal((updated.object() as ConfigMap).data?.["color"], "red");
    assert.equal(((await storage.get("web/a"))?.object() as ConfigMap)?.data?.["color"], "red");
  });

  suite("a deletion of a stale suggestion takes the fresh object, and is refused by it alone", async ({ storage }) => {
    const suggestion = await storage.create("web/a", aConfigMap("a", { keep: "1" }));
    const fresh = await storage.guaranteedUpdate("web/a", (e) => withData(e, { keep: "0" }));
    const validate = (present: Entry): void => {
      if ((present.object() as ConfigMap).data?.["keep"] === "1") throw new Error("kept");
    };
    const gone = await storage.delete("web/a", { suggestion, validate });
    assert.ok(gone.revision > fresh.revision);
    assert.equal((gone.object() as ConfigMap).data?.["keep"], "0");
    await assert.rejects(storage.delete("web/a", { suggestion }), isNotFound);
  });

  suite("a writer whose signal aborts between two attempts stops and writes nothing", async ({ storage, behind }) => {
    await storage.create("web/a", aConfigMap("a"));
    const controller = new AbortController();
    const change = async (e: Entry | undefined): Promise<KubeObject> => {
      await behind.guaranteedUpdate("web/a", (now) => withData(now, { other: "1" }));
      controller.abort();
      return withData(e, { mine: "1" });
    };
    await assert.rejects(storage.guaranteedUpdate("web/a", change, { signal: controller.signal }), { name: "AbortError" });
    assert.equal(((await storage.get("web/a"))?.object() as ConfigMap)?.data?.["mine"], undefined);
    const deleting = new AbortController();
    const validate = async (): Promise<void> => {
      await behind.guaranteedUpdate("web/a", (now) => withData(now, { other: "2" }));
      deleting.abort();
    };
    await assert.rejects(storage.delete("web/a", { validate, signal: deleting.signal }), { name: "AbortError" });
    assert.notEqual(await storage.get("web/a"), undefined);
  });
}

/** Deleted and created again, counted, compacted. */
function ends(suite: Suite): void {
  suite("an object that is deleted and created again is ADDED again, also for watches with a selector", async ({ storage }) => {
    const revision = await storage.currentRevision();
    const all = await follow(storage, { prefix: "web/", revision });
    const red = await follow(storage, { prefix: "web/", revision, fields: FieldSelector.parse("data.color=red") });
    await storage.create("web/a", aConfigMap("a", { color: "red" }));
    await storage.delete("web/a");
    await storage.create("web/a", aConfigMap("a", { color: "blue" }));
    await storage.delete("web/a");
    await storage.create("web/a", aConfigMap("a", { color: "red" }));
    assert.deepEqual(
      shapes(await all.next(5)),
      ["ADDED", "DELETED", "ADDED", "DELETED", "ADDED"].map((type) => `${type} web/a`),
    );
    assert.deepEqual(shapes(await red.next(3)), ["ADDED web/a", "DELETED web/a", "ADDED web/a"]);
    all.stop();
    red.stop();
  });

  suite("count counts", async ({ storage }) => {
    await storage.create("web/a", aConfigMap("a"));
    await storage.create("db/a", aConfigMap("a", {}, {}, "db"));
    await storage.get("web/a");
    assert.equal(await storage.count(), 2);
  });

  suite("a read of a compacted revision is Expired, with a token to continue", async ({ storage, compact }) => {
    for (const name of ["a", "b", "c"]) await storage.create(`web/${name}`, aConfigMap(name));
    const old = await storage.currentRevision();
    const first = await storage.list({ prefix: "", limit: 1 });
    await storage.guaranteedUpdate("web/b", (e) => withData(e, { color: "blue" }));
    await compact();
    // A cache may still hold the revision; then the answer must be right. Otherwise it is 410 with a fresh token.
    try {
      assert.deepEqual(keys((await storage.list({ prefix: "", limit: 5, continueToken: token(first) })).entries), [
        "web/b",
        "web/c",
      ]);
    } catch (err) {
      assert.ok(isResourceExpired(err), String(err));
      const next = (err as StatusError).status.metadata.continue;
      assert.ok(next);
      assert.deepEqual(keys((await storage.list({ prefix: "", limit: 5, continueToken: next })).entries), ["web/b", "web/c"]);
    }
    try {
      await storage.list({ prefix: "", revision: old, match: "Exact" });
    } catch (err) {
      assert.ok(isResourceExpired(err), String(err));
    }
  });
}

function token(result: { continueToken?: string }): string {
  assert.ok(result.continueToken, "the page has no continue token");
  return result.continueToken;
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { CacheConsumer } from "./change-source.ts";
import { ConsumerTable } from "./multiplexer.ts";

const change = (key: string, revision: number) => ({ key, value: undefined, revision, previous: undefined });

test("when one of two caches of a folder fails later, only that one is reset", async () => {
  const table = new ConsumerTable(discardLogger);
  const seen: string[] = [];
  const aConsumer = (name: string, apply: CacheConsumer["apply"]): CacheConsumer => ({
    apply(key, value, revision) {
      seen.push(`${name} ${key}`);
      return apply(key, value, revision);
    },
    reset: () => void seen.push(`${name} reset`),
  });
  const decoding = Promise.withResolvers<void>();
  table.attach(
    "pods",
    aConsumer("slow", () => decoding.promise),
  );
  table.attach(
    "pods",
    aConsumer("quick", () => {}),
  );
  const busy = table.route(change("pods/web/a", 3));
  assert.ok(busy !== undefined, "the slow one is waited for");
  decoding.reject(new Error("no KMS"));
  await busy;
  await settle();
  assert.deepEqual(seen, ["slow web/a", "quick web/a", "slow reset"]);
  assert.equal(table.route(change("secrets/web/a", 4)), undefined, "no cache has this folder");
});

test("a cache that detaches while the past is replayed does not stop the others of its folder", async () => {
  const table = new ConsumerTable(discardLogger);
  const seen: string[] = [];
  const aConsumer = (name: string, past: () => void): CacheConsumer => ({
    apply() {},
    past: async (after, changes) => {
      seen.push(`${name} after ${after}: ${changes.map(({ key }) => key).join()}`);
      past();
    },
    reset() {},
  });
  const detach = table.attach(
    "pods",
    aConsumer("first", () => detach()),
  );
  table.attach(
    "pods",
    aConsumer("second", () => {}),
  );
  table.attach(
    "secrets",
    aConsumer("none", () => {}),
  );
  await table.replay(7, [change("pods/web/a", 8), change("nodes/n", 9)]);
  assert.deepEqual(seen, ["first after 7: web/a", "second after 7: web/a", "none after 7: "]);
});

test("a cache that fails at once does not keep the change from the others of its folder", async () => {
  const table = new ConsumerTable(discardLogger);
  const seen: string[] = [];
  const attach = (name: string, apply: () => void) =>
    table.attach("pods", {
      apply() {
        seen.push(name);
        apply();
      },
      reset: () => void seen.push(`${name} reset`),
    });
  attach("broken", () => {
    throw new Error("bug");
  });
  attach("good", () => {});
  assert.equal(table.route(change("pods/web/a", 3)), undefined);
  await settle();
  assert.deepEqual(seen, ["broken", "good", "broken reset"]);
});

test("a folder whose caches have all detached hides no longer one", () => {
  const table = new ConsumerTable(discardLogger);
  const seen: string[] = [];
  const consumer: CacheConsumer = { apply: (key) => void seen.push(key), reset() {} };
  const detach = table.attach("services", consumer);
  table.attach("services/specs", consumer);
  void table.route(change("services/specs/web/a", 3));
  detach();
  void table.route(change("services/specs/web/a", 4));
  assert.deepEqual(seen, ["specs/web/a", "web/a"]);
});

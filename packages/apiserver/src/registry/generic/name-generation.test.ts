import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Storage } from "../../storage/storage.ts";
import { generatedNameAttempts } from "./before-create.ts";
import { newRegistryStore } from "./store.ts";
import type { StrategyContext } from "./strategy.ts";
import { definitionOf } from "./testing.ts";

test("a store where every generated name is taken says so, and when to try again", async () => {
  const names = new Set<string>();
  const storage = {
    async create(_key: string, { metadata }: { metadata: { name: string } }) {
      names.add(metadata.name);
      throw alreadyExists({ group: "", resource: "configmaps" }, metadata.name);
    },
  } as unknown as Storage;
  const store = newRegistryStore({
    turns: new Turns(),
    definition: definitionOf(),
    storage,
  });
  const ctx: StrategyContext = {
    user: undefined,
    namespace: "web",
    dryRun: false,
    now: () => 0,
    featureEnabled: () => true,
    warn: () => {},
  };
  const creating = store.create(ctx, { kind: "ConfigMap", apiVersion: "v1", metadata: { generateName: "job-" } }, {});
  await assert.rejects(creating, (err) => {
    assert.ok(err instanceof StatusError);
    const { name } = err.status.details ?? {};
    assert.equal(
      err.message,
      `configmaps "${name}" already exists, the server was not able to generate a unique name for the object`,
    );
    assert.deepEqual([err.code, err.reason, err.status.details?.retryAfterSeconds], [409, "AlreadyExists", 1]);
    return true;
  });
  assert.equal(names.size, generatedNameAttempts);
});

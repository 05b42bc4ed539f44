import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ControllerRevision } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { controllerRevisions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { createRevision, deleteRevisions } from "./write-revision.ts";

const revision = (name: string, image: string): ControllerRevision => ({
  apiVersion: "apps/v1",
  kind: "ControllerRevision",
  metadata: { namespace: "default", name },
  data: { spec: { template: { $patch: "replace", spec: { containers: [{ name: "c", image }] } } } },
  revision: 1,
});
const { signal } = new AbortController();

test("a revision that exists with the same data is returned, one with other data is a collision", async () => {
  const client = newFakeClient();
  const ctx = { client, turns: newUnlimitedTurns() };
  const made = await createRevision(ctx, revision("web-1", "a"), signal);
  assert.ok(made?.metadata.uid);
  assert.equal((await createRevision(ctx, revision("web-1", "a"), signal))?.metadata.uid, made.metadata.uid);
  assert.equal(await createRevision(ctx, revision("web-1", "b"), signal), undefined);
  client.react("create", "controllerrevisions", () => {
    throw forbidden(controllerRevisions, "web-2", "quota");
  });
  await assert.rejects(createRevision(ctx, revision("web-2", "a"), signal), /quota/);
});

test("a revision that is gone already does not keep those behind it; one that may not be deleted is an error", async () => {
  const client = newFakeClient();
  const all = ["web-1", "web-2", "web-3"].map((name) => revision(name, name));
  client.put(controllerRevisions, ...all.slice(1));
  await deleteRevisions(client, all, signal);
  assert.deepEqual(client.objects(controllerRevisions), []);
  client.react("delete", "controllerrevisions", () => {
    throw forbidden(controllerRevisions, "web-1", "no");
  });
  await assert.rejects(deleteRevisions(client, all, signal), /web-1/);
});

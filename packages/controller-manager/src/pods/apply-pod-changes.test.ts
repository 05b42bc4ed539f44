import assert from "node:assert/strict";
import { test } from "node:test";
import { newExpectations } from "@coxswain/apimachinery/controller/expectations";
import { forbidden, notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { aPod, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { silentRecorder } from "@coxswain/apimachinery/testing/silent-recorder";
import { applyPodChanges } from "./apply-pod-changes.ts";

const owner = aReplicaSet({ name: "web" });
const key = "default/web";
const template: PodTemplateSpec = { metadata: { labels: { app: "web" } }, spec: { containers: [] } };
const doomed = ["a", "b", "c"].map((name) => aPod({ name, owner }));

function setUp() {
  const client = newFakeClient();
  client.put(pods, ...doomed);
  const expectations = newExpectations(newFakeClock());
  const change = (create: number, remove = 0) =>
    applyPodChanges(
      { client, recorder: silentRecorder, turns: newUnlimitedTurns() },
      expectations,
      {
        owner,
        ownerResource: replicaSets,
        create: Array.from({ length: create }, () => template),
        delete: doomed.slice(0, remove),
      },
      new AbortController().signal,
    );
  /** Number of creations to be observed until the expectations are satisfied. */
  const stillExpected = (): number => {
    for (let seen = 0; seen < 20; seen++) {
      if (expectations.satisfied(key)) return seen;
      expectations.creationObserved(key);
    }
    return Number.POSITIVE_INFINITY;
  };
  return { client, expectations, change, stillExpected };
}

test("each pod that was created is expected, and nothing is when there was nothing to do", async () => {
  const { expectations, change, stillExpected } = setUp();
  expectations.expectCreations(key, 5);
  assert.deepEqual(await change(0), {});
  assert.equal(expectations.satisfied(key), false, "what was expected before is left as it was");
  assert.deepEqual(await change(3), {});
  assert.equal(stillExpected(), 3);
});

for (const { failAt, created } of [
  { failAt: 0, created: 0 },
  { failAt: 1, created: 2 },
  { failAt: 4, created: 6 },
]) {
  test(`when creation ${failAt} of ten fails, ${created} are expected: neither what failed nor what was not tried`, async () => {
    const { client, change, stillExpected } = setUp();
    let calls = 0;
    client.react("create", "pods", () => {
      if (calls++ === failAt) throw forbidden(pods, "", "quota");
      return undefined;
    });
    const { creating, deleting } = await change(10);
    assert.match(String(creating), /quota/);
    assert.equal(deleting, undefined);
    assert.equal(stillExpected(), created);
  });
}

test("a creation that a namespace on its way out refuses is no failure, and stays expected", async () => {
  const { client, change, stillExpected } = setUp();
  client.react("create", "pods", () => {
    const { status } = forbidden(pods, "", "it is being terminated");
    throw new StatusError({ ...status, details: { ...status.details, causes: [{ reason: "NamespaceTerminating" }] } });
  });
  assert.deepEqual(await change(2), {});
  assert.equal(stillExpected(), 2);
});

test("of three deletions the second fails: the others are tried and expected, it is not", async () => {
  const { client, expectations, change } = setUp();
  client.react("delete", "pods", ({ name }) => {
    if (name === "b") throw forbidden(pods, "b", "no");
    return undefined;
  });
  const { creating, deleting } = await change(0, 3);
  assert.equal(creating, undefined);
  assert.match(String(deleting), /no/);
  assert.deepEqual(
    client.objects(pods).map(({ metadata }) => metadata.name),
    ["b"],
  );
  assert.equal(expectations.satisfied(key), false);
  expectations.deletionObserved(key, "a-uid");
  assert.equal(expectations.satisfied(key), false);
  expectations.deletionObserved(key, "c-uid");
  assert.equal(expectations.satisfied(key), true);
});

test("a pod that another client deleted first leaves no expectation", async () => {
  const { client, expectations, change } = setUp();
  client.react("delete", "pods", ({ name = "" }) => {
    throw notFound(pods, name);
  });
  assert.deepEqual(await change(0, 2), {});
  assert.equal(expectations.satisfied(key), true);
});

test("a creation that fails does not keep pods from being deleted", async () => {
  const { client, expectations, change } = setUp();
  client.react("create", "pods", () => {
    throw forbidden(pods, "", "quota");
  });
  const { creating } = await change(2, 1);
  assert.ok(creating);
  assert.equal(client.object(pods, "default/a"), undefined);
  expectations.deletionObserved(key, "a-uid");
  assert.equal(expectations.satisfied(key), true);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { newApiObjects, noObjects } from "./api-objects.ts";

const hour = 3600_000;
const request = {
  namespace: "default",
  serviceAccount: "robot",
  audience: undefined as string | undefined,
  expirationSeconds: 3600,
  pod: { name: "web", uid: "uid-1" },
};

/** An API server that issues tokens `1`, `2` and so on with the requested lifetime. */
function issuing() {
  const clock = newFakeClock();
  const requested: unknown[] = [];
  const server = { error: undefined as Error | undefined, expires: true };
  const client = {
    async create(_: unknown, body: { spec: { expirationSeconds: number } }, options: object) {
      requested.push({ ...body.spec, ...options });
      if (server.error !== undefined) throw server.error;
      const expirationTimestamp = new Date(clock.now() + body.spec.expirationSeconds * 1000).toISOString();
      return { status: { token: String(requested.length), ...(server.expires && { expirationTimestamp }) } };
    },
  } as unknown as Client;
  const objects = newApiObjects(client, clock);
  return {
    clock,
    requested,
    server,
    token: async (more = {}) => (await objects.serviceAccountToken({ ...request, ...more })).token,
  };
}

test("a token is requested once per audience and pod, and bound to the pod", async () => {
  const { requested, token } = issuing();
  assert.deepEqual([await token(), await token()], ["1", "1"]);
  assert.deepEqual(requested, [
    {
      audiences: [],
      expirationSeconds: 3600,
      boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "web", uid: "uid-1" },
      namespace: "default",
      name: "robot",
      subresource: "token",
    },
  ]);
  assert.equal(await token({ audience: "vault" }), "2");
  hasFields(requested[1], { audiences: ["vault"] });
  assert.equal(await token({ pod: { name: "web", uid: "uid-2" } }), "3", "the next pod of the name has its own");
  assert.equal(await token(), "1");
});

for (const { name, expirationSeconds, good, old } of [
  { name: "four fifths of its life", expirationSeconds: 3600, good: 0.8 * hour - 10_001, old: 0.8 * hour + 1 },
  { name: "a day, however long it lives", expirationSeconds: 7 * 24 * 3600, good: 24 * hour - 10_001, old: 24 * hour + 1 },
]) {
  test(`a token is renewed after ${name}, and the new one is kept as long`, async () => {
    const { clock, token } = issuing();
    for (const round of ["1", "2"]) {
      assert.equal(await token({ expirationSeconds }), round);
      await clock.advance(good);
      assert.equal(await token({ expirationSeconds }), round);
      await clock.advance(old - good);
    }
    assert.equal(await token({ expirationSeconds }), "3");
  });
}

test("a token whose renewal fails is used until it expires", async () => {
  const { clock, server, token } = issuing();
  server.error = new Error("connect ECONNREFUSED");
  await assert.rejects(token(), /ECONNREFUSED/, "there is none yet");
  server.error = undefined;
  assert.equal(await token(), "2");
  server.error = new Error("connect ECONNREFUSED");
  await clock.advance(hour - 1);
  assert.equal(await token(), "2");
  await clock.advance(1);
  await assert.rejects(token(), /ECONNREFUSED/);
});

test("a token response without an expiry counts as valid for the requested duration", async () => {
  const { clock, server, token } = issuing();
  server.expires = false;
  assert.equal(await token(), "1");
  await clock.advance(0.8 * hour - 10_001);
  assert.equal(await token(), "1");
  await clock.advance(10_002);
  assert.equal(await token(), "2");
});

test("without an API server reads fail as not found, with the names that events show", async () => {
  await assert.rejects(noObjects.configMap("default", "cm"), /configmap "cm" not found/);
  await assert.rejects(noObjects.secret("default", "s"), /secret "s" not found/);
  await assert.rejects(noObjects.claim("default", "c"), /persistentvolumeclaims "c" not found/);
  await assert.rejects(noObjects.persistentVolume("v"), /persistentvolumes "v" not found/);
  await assert.rejects(noObjects.serviceAccountToken(request), /serviceaccounts "robot" not found/);
});

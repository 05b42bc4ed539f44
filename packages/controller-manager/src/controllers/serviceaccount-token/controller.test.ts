import assert from "node:assert/strict";
import { createHash, createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { test } from "node:test";
import { alreadyExists, conflict, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Secret, ServiceAccount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { secrets, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aServiceAccount } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { namespaceTerminating } from "../../testing/terminating.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { newServiceAccountTokenController } from "./controller.ts";
import { newLegacyTokenSigner } from "./legacy-token.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const serviceAccountKey = rsa.privateKey.export({ type: "pkcs8", format: "pem" }).toString();

async function started(t: { after(fn: () => void): void }): Promise<TestContext> {
  const world = newTestContext(t, { serviceAccountKey, rootCa: "CA" });
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  await world.run(newServiceAccountTokenController(world.ctx));
  await settle(30);
  return world;
}
const text = (secret: Secret | undefined, key: string) => Buffer.from(secret?.data?.[key] ?? "", "base64").toString();
const account = ({ client }: TestContext) => client.object<ServiceAccount>(serviceAccounts, "web/default");

test("each account gets one secret with a token, and names it", async (t) => {
  const world = await started(t);
  const stored = world.client.objects<Secret>(secrets);
  assert.equal(stored.length, 1);
  const [secret] = stored;
  assert.match(secret?.metadata.name ?? "", /^default-token-[a-z0-9]{5}$/);
  assert.deepEqual(account(world)?.secrets, [{ name: secret?.metadata.name }]);
  assert.equal(secret?.type, "kubernetes.io/service-account-token");
  assert.deepEqual([text(secret, "ca.crt"), text(secret, "namespace")], ["CA", "web"]);
  const [header, claims] = text(secret, "token")
    .split(".", 2)
    .map((part) => JSON.parse(Buffer.from(part, "base64url").toString()));
  const kid = createHash("sha256")
    .update(rsa.publicKey.export({ type: "spki", format: "der" }))
    .digest("base64url");
  assert.deepEqual(header, { alg: "RS256", kid });
  assert.deepEqual(claims, {
    iss: "kubernetes/serviceaccount",
    "kubernetes.io/serviceaccount/namespace": "web",
    "kubernetes.io/serviceaccount/secret.name": secret?.metadata.name,
    "kubernetes.io/serviceaccount/service-account.name": "default",
    "kubernetes.io/serviceaccount/service-account.uid": "default-uid",
    sub: "system:serviceaccount:web:default",
  });
});

test("a deleted secret is replaced, in the account too", async (t) => {
  const world = await started(t);
  const [old] = world.client.objects<Secret>(secrets);
  world.client.remove(secrets, `web/${old?.metadata.name}`);
  await world.clock.advance(1000);
  const [now] = world.client.objects<Secret>(secrets);
  assert.notEqual(now?.metadata.name, old?.metadata.name);
  assert.deepEqual(account(world)?.secrets, [{ name: now?.metadata.name }]);
});

test("a manually created secret is filled in", async (t) => {
  const world = await started(t);
  const metadata = { namespace: "web", name: "mine", annotations: { "kubernetes.io/service-account.name": "default" } };
  world.client.put<Secret>(secrets, { metadata, type: "kubernetes.io/service-account-token", data: { namespace: "" } });
  await settle(30);
  const mine = world.client.object<Secret>(secrets, "web/mine");
  assert.ok(text(mine, "token").split(".").length === 3);
  assert.equal(text(mine, "namespace"), "web");
  assert.equal(mine?.metadata.annotations?.["kubernetes.io/service-account.uid"], "default-uid");
});

test("secrets go with their account, and those of an older account of the name", async (t) => {
  const world = await started(t);
  const annotations = { "kubernetes.io/service-account.name": "default", "kubernetes.io/service-account.uid": "older" };
  world.client.put<Secret>(secrets, {
    metadata: { namespace: "web", name: "old", annotations },
    type: "kubernetes.io/service-account-token",
  });
  world.client.put<Secret>(secrets, { metadata: { namespace: "web", name: "opaque" }, type: "Opaque" });
  await settle(30);
  assert.equal(world.client.object(secrets, "web/old"), undefined);
  world.client.remove(serviceAccounts, "web/default");
  await settle(30);
  assert.deepEqual(
    world.client.objects(secrets).map(({ metadata }) => metadata.name),
    ["opaque"],
  );
});

test("is off without a key", (t) => assert.equal(newServiceAccountTokenController(newTestContext(t).ctx), undefined));

const claims = { namespace: "a", secretName: "b", accountName: "c", accountUid: "d" };
for (const { name, pem, alg, hash } of [
  { name: "RSA", pem: serviceAccountKey, alg: "RS256", hash: "sha256" },
  ...(["P-256", "P-384", "P-521"] as const).map((curve, i) => ({
    name: curve,
    pem: generateKeyPairSync("ec", { namedCurve: curve }).privateKey.export({ type: "sec1", format: "pem" }).toString(),
    alg: ["ES256", "ES384", "ES512"][i] as string,
    hash: ["sha256", "sha384", "sha512"][i] as string,
  })),
]) {
  test(`signs with ${name}`, () => {
    const [header = "", body = "", signature = ""] = newLegacyTokenSigner(pem).sign(claims).split(".");
    assert.partialDeepStrictEqual(JSON.parse(Buffer.from(header, "base64url").toString()), { alg });
    const key = { key: createPublicKey(pem), dsaEncoding: "ieee-p1363" as const };
    assert.equal(verify(hash, Buffer.from(`${header}.${body}`), key, Buffer.from(signature, "base64url")), true);
  });
}

test("refuses other keys", () => {
  const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  assert.throws(() => newLegacyTokenSigner(pem), /must be an RSA or ECDSA key/);
});

test("an account that another writer changes meanwhile still gets the reference, to the one secret", async (t) => {
  const world = newTestContext(t, { serviceAccountKey, rootCa: "CA" });
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  let races = 0;
  world.client.react("update", "serviceaccounts", () => {
    if (races++ === 0)
      world.client.put(serviceAccounts, { ...(account(world) as ServiceAccount), imagePullSecrets: [{ name: "pull" }] });
    return undefined;
  });
  await world.run(newServiceAccountTokenController(world.ctx));
  await world.clock.advance(1000);
  await settle(30);
  const stored = world.client.objects<Secret>(secrets);
  assert.equal(stored.length, 1);
  assert.deepEqual(account(world)?.secrets, [{ name: stored[0]?.metadata.name }]);
  assert.deepEqual(account(world)?.imagePullSecrets, [{ name: "pull" }]);
});

test("a renewed reference takes the place of the lost one, and of no other", async (t) => {
  const world = await started(t);
  const [old] = world.client.objects<Secret>(secrets);
  const other = [{ name: "default-dockercfg-x" }, { name: "mine" }];
  const before = account(world) as ServiceAccount;
  world.client.put(serviceAccounts, {
    ...before,
    secrets: [...other, ...(before.secrets ?? []), { name: "default-token-lost" }],
  });
  world.client.remove(secrets, `web/${old?.metadata.name}`);
  await settle(30);
  await world.clock.advance(2000);
  const [now] = world.client.objects<Secret>(secrets);
  assert.notEqual(now?.metadata.name, old?.metadata.name);
  assert.deepEqual(account(world)?.secrets, [...other, { name: now?.metadata.name }]);
});

test("nothing is made for an account that the cache shows as it no longer is", async (t) => {
  const world = newTestContext(t, { serviceAccountKey, rootCa: "CA" });
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  let isBehind = true;
  world.client.react("get", "serviceaccounts", () => {
    const live = account(world) as ServiceAccount;
    return isBehind ? { ...live, metadata: { ...live.metadata, resourceVersion: "999" } } : undefined;
  });
  await world.run(newServiceAccountTokenController(world.ctx));
  await settle(30);
  assert.deepEqual(world.client.writes, []);
  isBehind = false;
  await world.clock.advance(1000);
  await settle(30);
  assert.equal(world.client.objects(secrets).length, 1);
});

test("a secret that is deleted before its account names it is replaced", async (t) => {
  const world = newTestContext(t, { serviceAccountKey, rootCa: "CA" });
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  let refuse = true;
  world.client.react("update", "serviceaccounts", () => {
    if (refuse) throw conflict(serviceAccounts, "default", "changed");
  });
  await world.run(newServiceAccountTokenController(world.ctx));
  const [first] = world.client.objects<Secret>(secrets);
  assert.equal(account(world)?.secrets, undefined);
  refuse = false;
  world.client.remove(secrets, `web/${first?.metadata.name}`);
  await settle(30);
  await world.clock.advance(1000);
  await settle(30);
  const names = world.client.objects<Secret>(secrets).map(({ metadata }) => ({ name: metadata.name }));
  assert.equal(names.length, 1);
  assert.deepEqual(account(world)?.secrets, names);
});

test("a secret that was deleted while its watch was interrupted is replaced, in the account too", async (t) => {
  const world = newTestContext(t, { serviceAccountKey, rootCa: "CA" });
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  let unseen: Secret | undefined;
  world.client.react("create", "secrets", ({ sent }) => {
    if (unseen !== undefined) return undefined;
    unseen = sent as Secret;
    return unseen;
  });
  await world.run(newServiceAccountTokenController(world.ctx));
  await settle(30);
  assert.deepEqual(account(world)?.secrets, [{ name: unseen?.metadata.name }]);
  let isThere = true;
  world.client.react("get", "secrets", () => (isThere ? unseen : undefined));
  await world.clock.advance(5_000);
  await settle(30);
  assert.equal(world.client.objects(secrets).length, 0, "the cache was only late");
  isThere = false;
  await world.clock.advance(5_000);
  await settle(30);
  const [now] = world.client.objects<Secret>(secrets);
  assert.notEqual(now?.metadata.name, undefined);
  assert.deepEqual(account(world)?.secrets, [{ name: now?.metadata.name }]);
});

const tokenOf = (name: string, accountUid = "", data: Record<string, string> = {}, namespace = "web"): Secret => ({
  metadata: {
    ...{ namespace, name, uid: `uid-of-${name}` },
    annotations: { "kubernetes.io/service-account.name": "default", "kubernetes.io/service-account.uid": accountUid },
  },
  type: "kubernetes.io/service-account-token",
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")])),
});
const prepared = (t: { after(fn: () => void): void }) => newTestContext(t, { serviceAccountKey, rootCa: "CA" });

test("the secrets of an account that only the cache does not show are kept and filled in", async (t) => {
  const world = prepared(t);
  world.client.put(secrets, tokenOf("mine"));
  const live = aServiceAccount({ namespace: "web" });
  world.client.react("get", "serviceaccounts", () => live);
  await world.run(newServiceAccountTokenController(world.ctx));
  await settle(30);
  assert.ok(text(world.client.object<Secret>(secrets, "web/mine"), "token"));
  assert.deepEqual(
    world.client.writes.filter(({ verb }) => verb === "delete"),
    [],
  );
});

test("an account that names a secret made by hand gets no other one", async (t) => {
  const world = prepared(t);
  world.client.put(secrets, tokenOf("mine"));
  world.client.put(serviceAccounts, { ...aServiceAccount({ namespace: "web" }), secrets: [{ name: "pull" }, { name: "mine" }] });
  await world.run(newServiceAccountTokenController(world.ctx));
  await settle(30);
  assert.deepEqual(
    world.client.objects(secrets).map(({ metadata }) => metadata.name),
    ["mine"],
  );
});

test("the token and namespace of a filled secret are kept, and its outdated CA bundle is replaced", async (t) => {
  const world = prepared(t);
  world.client.put(serviceAccounts, { ...aServiceAccount({ namespace: "web" }), secrets: [{ name: "mine" }] });
  world.client.put(secrets, tokenOf("mine", "default-uid", { token: "signed before", namespace: "noted", "ca.crt": "old" }));
  await world.run(newServiceAccountTokenController(world.ctx));
  await settle(30);
  const mine = world.client.object<Secret>(secrets, "web/mine");
  assert.deepEqual(
    ["token", "namespace", "ca.crt"].map((key) => text(mine, key)),
    ["signed before", "noted", "CA"],
  );
});

test("an account that is being deleted gets no secret", async (t) => {
  const world = prepared(t);
  const deletedAt = "2022-01-01T00:00:00Z";
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web", deletedAt, finalizers: ["example.com/hold"] }));
  await world.run(newServiceAccountTokenController(world.ctx));
  await settle(30);
  assert.deepEqual(world.client.writes, []);
});

test("nothing is made for an account that was deleted and created again, of which the cache shows the former", async (t) => {
  const world = prepared(t);
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  const { metadata, ...former } = account(world) as ServiceAccount;
  world.client.react("get", "serviceaccounts", () => ({ ...former, metadata: { ...metadata, uid: "next" } }));
  await world.run(newServiceAccountTokenController(world.ctx));
  await world.clock.advance(60_000);
  await settle(30);
  assert.deepEqual(world.client.writes, []);
});

test("in a namespace that has begun to end no secret is made, without a retry", async (t) => {
  const world = prepared(t);
  world.client.react("create", "secrets", () => {
    throw namespaceTerminating(secrets);
  });
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  await world.run(newServiceAccountTokenController(world.ctx));
  await world.clock.advance(60_000);
  await settle(30);
  assert.deepEqual(
    world.client.writes.map(({ verb }) => verb),
    ["create"],
  );
});

test("a secret that replaced the one of a missing account meanwhile is kept, and that is no failure", async (t) => {
  const world = prepared(t);
  world.client.put(secrets, tokenOf("old", "gone"));
  world.client.react("delete", "secrets", () => {
    if (world.client.object(secrets, "web/old")?.metadata.uid === "second") return undefined;
    const { metadata, ...rest } = tokenOf("old", "gone");
    world.client.remove(secrets, "web/old");
    world.client.put(secrets, { ...rest, type: "Opaque", metadata: { ...metadata, uid: "second" } });
    return undefined;
  });
  await world.run(newServiceAccountTokenController(world.ctx));
  await world.clock.advance(60_000);
  await settle(30);
  assert.equal(world.client.object(secrets, "web/old")?.metadata.uid, "second");
  assert.equal(world.client.writes.length, 1);
});

test("a secret that changes while it is deleted with its account is no failure", async (t) => {
  const world = prepared(t);
  world.client.put(secrets, tokenOf("old", "gone"));
  world.client.react("delete", "secrets", ({ name }) => {
    throw conflict(secrets, name, "the UID in the precondition does not match");
  });
  await world.run(newServiceAccountTokenController(world.ctx));
  await world.clock.advance(60_000);
  await settle(30);
  assert.equal(world.client.writes.length, 1, "it is not tried again");
});

test("a secret that the account could not name yet stays its secret when another one is deleted", async (t) => {
  let isAway = true;
  const world = newTestContext(t, { serviceAccountKey, rootCa: "CA" });
  world.client.react("update", "serviceaccounts", () => {
    if (isAway) throw serviceUnavailable("away");
    return undefined;
  });
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  await world.run(newServiceAccountTokenController(world.ctx));
  const [made] = world.client.objects<Secret>(secrets);
  world.client.put<Secret>(secrets, { ...made, metadata: { ...made?.metadata, name: "mine", uid: "mine" } });
  await settle(30);
  world.client.remove(secrets, "web/mine");
  await settle(30);
  isAway = false;
  await world.clock.advance(5000);
  await settle(30);
  assert.deepEqual(
    world.client.objects(secrets).map(({ metadata }) => metadata.name),
    [made?.metadata.name],
  );
  assert.deepEqual(account(world)?.secrets, [{ name: made?.metadata.name }]);
});

test("secrets of an account of the same name in another namespace are not touched", async (t) => {
  const world = prepared(t);
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "other", uid: "other-uid" }));
  world.client.put(secrets, tokenOf("theirs", "other-uid", { token: "t", namespace: "n", "ca.crt": "CA" }, "other"));
  await world.run(newServiceAccountTokenController(world.ctx));
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  await settle(30);
  world.client.remove(serviceAccounts, "web/default");
  await settle(30);
  assert.equal(world.client.object(secrets, "other/theirs")?.metadata.name, "theirs");
});

test("a generated name that another secret has is not the account's; the next one is", async (t) => {
  const world = newTestContext(t, { serviceAccountKey, rootCa: "CA" });
  let taken: string | undefined;
  world.client.react("create", "secrets", ({ sent }) => {
    if (taken !== undefined) return undefined;
    taken = (sent as Secret).metadata.name ?? "";
    throw alreadyExists(secrets, taken);
  });
  world.client.put(serviceAccounts, aServiceAccount({ namespace: "web" }));
  await world.run(newServiceAccountTokenController(world.ctx));
  assert.equal(account(world)?.secrets, undefined);
  await world.clock.advance(1000);
  await settle(30);
  const made = world.client.objects<Secret>(secrets).map(({ metadata }) => metadata.name);
  assert.deepEqual(
    account(world)?.secrets?.map(({ name }) => name),
    made,
  );
  assert.deepEqual([made.length, made[0] === taken], [1, false]);
});

import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { CompactSign } from "jose";
import {
  boundServiceAccountToken,
  legacyServiceAccountToken,
  newTokenUse,
  type ServiceAccountTokenOptions,
} from "./service-account.ts";
import { parseKeys } from "./service-account-keys.ts";

const issuer = "https://kubernetes.default.svc";
const own = newServiceAccountKey();
const foreign = newServiceAccountKey();
const now = Date.parse("2022-01-01T00:00:00Z");
const seconds = now / 1000;

function sign(claims: Record<string, unknown>, header: Record<string, string> = {}, keyPem = own.keyPem): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: "RS256", ...header })
    .sign(createPrivateKey(keyPem));
}

function boundClaims(changes: Record<string, unknown> = {}, kubernetes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    iss: issuer,
    aud: [issuer],
    sub: "system:serviceaccount:web:robot",
    exp: seconds + 3600,
    nbf: seconds,
    iat: seconds,
    "kubernetes.io": {
      namespace: "web",
      serviceaccount: { name: "robot", uid: "sa-uid" },
      pod: { name: "p", uid: "pod-uid" },
      ...kubernetes,
    },
    ...changes,
  };
}

function options(objects: Record<string, KubeObject>): ServiceAccountTokenOptions {
  return {
    issuers: [issuer],
    keys: parseKeys(own.pubPem),
    apiAudiences: [issuer],
    lookup: true,
    getter: { get: async (kind, namespace, name) => objects[`${kind}/${namespace}/${name}`] },
    clock: newFakeClock(now),
    use: newTokenUse(newMetricsRegistry()),
  };
}

const alive = {
  "serviceaccounts/web/robot": { metadata: { name: "robot", namespace: "web", uid: "sa-uid" } },
  "pods/web/p": { metadata: { name: "p", namespace: "web", uid: "pod-uid" } },
};

test("a bound token is its service account with the pod as extra", async () => {
  const result = await boundServiceAccountToken(options(alive))(await sign(boundClaims()), [issuer]);
  assert.deepEqual(result, {
    user: {
      name: "system:serviceaccount:web:robot",
      uid: "sa-uid",
      groups: ["system:serviceaccounts", "system:serviceaccounts:web"],
      extra: { "authentication.kubernetes.io/pod-name": ["p"], "authentication.kubernetes.io/pod-uid": ["pod-uid"] },
    },
    audiences: [issuer],
  });
});

for (const { name, claims = boundClaims(), key, objects = alive, audiences = [issuer] } of [
  { name: "signed by another key", key: foreign.keyPem },
  { name: "expired for more than the leeway", claims: boundClaims({ exp: seconds - 61 }) },
  { name: "not valid yet", claims: boundClaims({ nbf: seconds + 61 }) },
  { name: "issued in the future", claims: boundClaims({ iat: seconds + 61 }) },
  { name: "without a namespace", claims: boundClaims({}, { namespace: "" }) },
  { name: "without an account", claims: boundClaims({}, { serviceaccount: undefined }) },
  { name: "of an account without a name", claims: boundClaims({}, { serviceaccount: { name: "", uid: "sa-uid" } }) },
  { name: "without claims of ours", claims: boundClaims({ "kubernetes.io": undefined }) },
  { name: "without an expiry", claims: boundClaims({ exp: undefined }) },
  { name: "for another audience", claims: boundClaims({ aud: ["vault"] }) },
  { name: "requested for an audience it does not have", audiences: ["vault"] },
  { name: "of a deleted service account", objects: { "pods/web/p": alive["pods/web/p"] } },
  { name: "of a service account made again", claims: boundClaims({}, { serviceaccount: { name: "robot", uid: "old" } }) },
  { name: "that says no uid of its account", claims: boundClaims({}, { serviceaccount: { name: "robot" } }) },
  { name: "that says no uid of its pod", claims: boundClaims({}, { pod: { name: "p" } }) },
  { name: "of a deleted pod", objects: { "serviceaccounts/web/robot": alive["serviceaccounts/web/robot"] } },
  { name: "of a pod made again under its name", claims: boundClaims({}, { pod: { name: "p", uid: "old" } }) },
  {
    name: "of a pod whose deletion is long past",
    objects: {
      ...alive,
      "pods/web/p": { metadata: { ...alive["pods/web/p"].metadata, deletionTimestamp: "2021-12-31T23:58:00Z" } },
    },
  },
] as {
  name: string;
  claims?: Record<string, unknown>;
  key?: string;
  objects?: Record<string, KubeObject>;
  audiences?: string[];
}[]) {
  test(`refuses a token ${name}`, async () => {
    const token = await sign(claims, {}, key);
    await assert.rejects(boundServiceAccountToken(options(objects))(token, audiences));
  });
}

test("a token is good for a minute more at either end, for clocks that differ", async () => {
  for (const claims of [{ exp: seconds - 60 }, { nbf: seconds + 60, iat: seconds + 60 }]) {
    const token = await sign(boundClaims(claims));
    assert.ok(await boundServiceAccountToken(options(alive))(token, [issuer]));
  }
});

for (const { name, claims, requested, granted } of [
  { name: "of no audience is for ours", claims: { aud: undefined }, requested: ["api", issuer], granted: [issuer] },
  { name: "of an empty list of audiences is for ours", claims: { aud: [] }, requested: ["api", issuer], granted: [issuer] },
  { name: "of one audience as a text is for it", claims: { aud: "vault" }, requested: ["api", "vault"], granted: ["vault"] },
  {
    name: "of several is for those that are requested",
    claims: { aud: ["a", 7, "b"] },
    requested: ["b", "a"],
    granted: ["a", "b"],
  },
  { name: "that is reviewed without audiences has none", claims: {}, requested: undefined, granted: undefined },
]) {
  test(`a token ${name}`, async () => {
    const result = await boundServiceAccountToken(options(alive))(await sign(boundClaims(claims)), requested);
    assert.deepEqual(result?.audiences, granted);
  });
}

for (const { name, warnafter, annotation, counts } of [
  { name: "before its original end is counted as valid", warnafter: seconds, annotation: undefined, counts: [1, 0] },
  {
    name: "after its original end is counted as stale, and the audit says so",
    warnafter: seconds - 90,
    annotation: "subject: system:serviceaccount:web:robot, seconds after warning threshold: 90",
    counts: [0, 1],
  },
  { name: "without an original end is not counted", warnafter: 0, annotation: undefined, counts: [0, 0] },
]) {
  test(`a token of extended life ${name}`, async () => {
    const with_ = options(alive);
    const result = await boundServiceAccountToken(with_)(await sign(boundClaims({}, { warnafter })), [issuer]);
    assert.equal(result?.auditAnnotations?.["authentication.k8s.io/stale-token"], annotation);
    assert.deepEqual([with_.use.valid.value, with_.use.stale.value], counts);
  });
}

test("the age of a stale token is told in whole seconds", async () => {
  const later = { ...options(alive), clock: newFakeClock(now + 700) };
  const result = await boundServiceAccountToken(later)(await sign(boundClaims({}, { warnafter: seconds - 90 })), [issuer]);
  assert.match(result?.auditAnnotations?.["authentication.k8s.io/stale-token"] ?? "", /, seconds after warning threshold: 90$/);
});

test("leaves tokens of other issuers and malformed tokens to other authenticators", async () => {
  const authenticate = boundServiceAccountToken(options(alive));
  assert.equal(await authenticate(await sign(boundClaims({ iss: "https://elsewhere" })), [issuer]), undefined);
  assert.equal(await authenticate("abc", undefined), undefined);
  assert.equal(await authenticate("a.b.c", undefined), undefined);
  assert.equal(await authenticate(await sign(boundClaims({ long: "x".repeat(1024 * 1024) })), [issuer]), undefined);
});

test("refuses a token without signature, whatever its header says", async () => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = `${part({ alg: "none" })}.${part(boundClaims())}.`;
  await assert.rejects(boundServiceAccountToken(options(alive))(token, [issuer]), /invalid bearer token/);
});

test("refuses a token signed with the public key as a shared secret", async () => {
  const token = await new CompactSign(Buffer.from(JSON.stringify(boundClaims())))
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from(own.pubPem));
  await assert.rejects(boundServiceAccountToken(options(alive))(token, [issuer]), /invalid bearer token/);
});

test("a legacy token must be the one that its secret holds", async () => {
  const claims = {
    iss: "kubernetes/serviceaccount",
    sub: "system:serviceaccount:web:robot",
    "kubernetes.io/serviceaccount/namespace": "web",
    "kubernetes.io/serviceaccount/secret.name": "robot-token",
    "kubernetes.io/serviceaccount/service-account.name": "robot",
    "kubernetes.io/serviceaccount/service-account.uid": "sa-uid",
  };
  const token = await sign(claims);
  const secret = (stored: string): KubeObject =>
    ({
      metadata: { name: "robot-token", namespace: "web" },
      data: { token: Buffer.from(stored).toString("base64") },
    }) as KubeObject;
  const good = await legacyServiceAccountToken(options({ ...alive, "secrets/web/robot-token": secret(token) }))(token, [issuer]);
  assert.equal(good?.user.name, "system:serviceaccount:web:robot");
  for (const stored of ["another", await sign({ ...claims, "kubernetes.io/serviceaccount/service-account.uid": "sa-uix" })]) {
    const other = options({ ...alive, "secrets/web/robot-token": secret(stored) });
    await assert.rejects(legacyServiceAccountToken(other)(token, [issuer]), /does not match server's copy/);
  }
  const forged = options(alive);
  await assert.rejects(
    legacyServiceAccountToken(forged)(await sign(claims, {}, foreign.keyPem), [issuer]),
    /invalid bearer token/,
  );
  assert.equal(forged.use.legacy.value, 0);
  const named = { ...options(alive), issuers: [issuer, "kubernetes/serviceaccount"] };
  assert.equal(await boundServiceAccountToken(named)(token, [issuer]), undefined);
  await assert.rejects(legacyServiceAccountToken(options(alive))(token, [issuer]), /invalidated/);
});

const other = newServiceAccountKey();
test("a token of the second key, for its second audience, of the second issuer is good", async () => {
  const two = {
    ...options(alive),
    issuers: ["https://new.test", issuer],
    keys: [...parseKeys(other.pubPem), ...parseKeys(own.pubPem)],
  };
  const authenticate = boundServiceAccountToken(two);
  const result = await authenticate(await sign(boundClaims({ aud: ["vault", "api", issuer] })), ["x", issuer, "api"]);
  assert.deepEqual(result?.audiences, ["api", issuer]);
  assert.ok(await authenticate(await sign(boundClaims({ iss: "https://new.test" }), {}, other.keyPem), [issuer]));
  // A wrong kid only changes the order in which keys are tried.
  assert.ok(await authenticate(await sign(boundClaims(), { kid: two.keys[0]?.id ?? "" }), [issuer]));
});

const withSecret = boundClaims({}, { secret: { name: "s", uid: "secret-uid" } });
const aliveSecret = { "secrets/web/s": { metadata: { name: "s", namespace: "web", uid: "secret-uid" } } };
const deleted = (object: KubeObject, at: string): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, deletionTimestamp: at },
});
for (const { name, objects, want } of [
  { name: "with all that it is bound to", objects: { ...alive, ...aliveSecret }, want: true },
  { name: "whose secret is gone, though its pod is there", objects: alive, want: false },
  {
    name: "whose secret was made again",
    objects: { ...alive, "secrets/web/s": { metadata: { name: "s", namespace: "web", uid: "new" } } },
    want: false,
  },
  {
    name: "whose pod is gone, though its secret is there",
    objects: { "serviceaccounts/web/robot": alive["serviceaccounts/web/robot"], ...aliveSecret },
    want: false,
  },
  {
    name: "whose account was deleted a minute ago and more",
    objects: {
      ...alive,
      ...aliveSecret,
      "serviceaccounts/web/robot": deleted(alive["serviceaccounts/web/robot"], "2021-12-31T23:58:59Z"),
    },
    want: false,
  },
  {
    name: "whose pod was deleted a minute ago",
    objects: { ...alive, ...aliveSecret, "pods/web/p": deleted(alive["pods/web/p"], "2021-12-31T23:59:00Z") },
    want: true,
  },
  {
    name: "whose pod was deleted less than a minute ago",
    objects: { ...alive, ...aliveSecret, "pods/web/p": deleted(alive["pods/web/p"], "2021-12-31T23:59:01Z") },
    want: true,
  },
] as { name: string; objects: Record<string, KubeObject>; want: boolean }[]) {
  test(`a token of three objects ${name} is ${want ? "good" : "refused"}`, async () => {
    const requests = boundServiceAccountToken(options(objects))(await sign(withSecret), [issuer]);
    if (want) assert.ok(await requests);
    else await assert.rejects(requests);
  });
}

test("an object that the cache lacks, or has with an earlier uid, is looked up in the store", async () => {
  const token = await sign(boundClaims());
  const stale = { metadata: { name: "p", namespace: "web", uid: "before" } } as KubeObject;
  for (const cached of [undefined, stale]) {
    const requests: string[] = [];
    const get: ServiceAccountTokenOptions["getter"]["get"] = async (kind, namespace, name, live) => {
      requests.push(`${kind}${live ? " live" : ""}`);
      return live ? (alive as Record<string, KubeObject>)[`${kind}/${namespace}/${name}`] : cached;
    };
    assert.ok(await boundServiceAccountToken({ ...options(alive), getter: { get } })(token, [issuer]));
    assert.deepEqual(requests, ["serviceaccounts", "serviceaccounts live", "pods", "pods live"]);
  }
});

const legacyClaims = (changes: Record<string, string> = {}) => ({
  iss: "kubernetes/serviceaccount",
  sub: "system:serviceaccount:web:robot",
  "kubernetes.io/serviceaccount/namespace": "web",
  "kubernetes.io/serviceaccount/secret.name": "robot-token",
  "kubernetes.io/serviceaccount/service-account.name": "robot",
  "kubernetes.io/serviceaccount/service-account.uid": "sa-uid",
  ...changes,
});
for (const { name, claims = legacyClaims(), secret = {}, account = {}, want } of [
  { name: "whose secret is being deleted", secret: { deletionTimestamp: "2022-01-01T00:00:00Z" }, want: /invalidated/ },
  { name: "whose account is being deleted", account: { deletionTimestamp: "2022-01-01T00:00:00Z" }, want: /has been deleted/ },
  { name: "whose account was made again", account: { uid: "new" }, want: /does not match claim/ },
  {
    name: "that says another account than its subject",
    claims: legacyClaims({ sub: "system:serviceaccount:web:other" }),
    want: /does not match the service account claims/,
  },
  { name: "without a subject", claims: legacyClaims({ sub: "robot" }), want: /sub claim is missing/ },
  ...["namespace", "secret.name", "service-account.name", "service-account.uid"].map((claim) => ({
    name: `without a ${claim}`,
    claims: legacyClaims({ [`kubernetes.io/serviceaccount/${claim}`]: "" }),
    want: /claim is missing/,
  })),
  {
    name: "that says another namespace than its subject",
    claims: legacyClaims({ sub: "system:serviceaccount:db:robot" }),
    want: /does not match the service account claims/,
  },
] as { name: string; claims?: Record<string, string>; secret?: object; account?: object; want: RegExp }[]) {
  test(`refuses a legacy token ${name}`, async () => {
    const token = await sign(claims);
    const objects = {
      "secrets/web/robot-token": {
        metadata: { name: "robot-token", namespace: "web", ...secret },
        data: { token: Buffer.from(token).toString("base64") },
      } as KubeObject,
      "serviceaccounts/web/robot": { metadata: { ...alive["serviceaccounts/web/robot"].metadata, ...account } },
    };
    await assert.rejects(legacyServiceAccountToken(options(objects))(token, [issuer]), want);
  });
}

test("without lookup a legacy token is good as long as its signature; with it, what the cache lacks is looked up", async () => {
  const token = await sign(legacyClaims());
  const gone = { ...options({}), lookup: false };
  assert.equal((await legacyServiceAccountToken(gone)(token, [issuer]))?.user.uid, "sa-uid");
  assert.equal(gone.use.legacy.value, 1);
  const secret = { metadata: { name: "robot-token" }, data: { token: Buffer.from(token).toString("base64") } } as KubeObject;
  const before = { metadata: { name: "robot", uid: "before" } } as KubeObject;
  const get: ServiceAccountTokenOptions["getter"]["get"] = async (kind, _, __, live) => {
    if (!live) return kind === "secrets" ? undefined : before;
    return kind === "secrets" ? secret : alive["serviceaccounts/web/robot"];
  };
  assert.ok(await legacyServiceAccountToken({ ...options({}), getter: { get } })(token, [issuer]));
});

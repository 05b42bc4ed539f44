import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { newServiceAccountKey } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { CompactSign } from "jose";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const issuer = "https://kubernetes.default.svc";
const folder = mkdtempSync(join(tmpdir(), "cox-tokens-"));
const { keyPem, pubPem } = newServiceAccountKey();
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
};
const auditLog = join(folder, "audit.log");
let server: TestServer;

before(async () => {
  const policy = { apiVersion: "audit.k8s.io/v1", kind: "Policy", rules: [{ level: "Metadata" }] };
  server = await startTestServer(undefined, [
    `--service-account-key-file=${file("sa.pub", pubPem)}`,
    `--service-account-signing-key-file=${file("sa.key", keyPem)}`,
    `--audit-policy-file=${file("policy.yaml", JSON.stringify(policy))}`,
    `--audit-log-path=${auditLog}`,
  ]);
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const accounts = "/api/v1/namespaces/default/serviceaccounts";
const pods = "/api/v1/namespaces/default/pods";

async function make(path: string, object: object): Promise<{ metadata: { uid: string } }> {
  const { code, body, text } = await server.request("POST", path, object);
  assert.equal(code, 201, text);
  return body;
}

const newPod = (name: string, account: string) =>
  make(pods, {
    metadata: { name },
    spec: { serviceAccountName: account, containers: [{ name: "main", image: "registry.test/web:1" }] },
  });

/** @param seconds varies the token: equal claims give equal tokens, whose verification is cached */
async function podToken(account: string, pod: string, seconds: number): Promise<string> {
  const spec = { expirationSeconds: seconds, boundObjectRef: { apiVersion: "v1", kind: "Pod", name: pod } };
  const { body } = await server.request("POST", `${accounts}/${account}/token`, { spec });
  return body.status.token;
}

/** @returns the status of a request that all authenticated users may make */
const codeFor = async (token: string): Promise<number> =>
  (await server.request("GET", "/api", undefined, { authorization: `Bearer ${token}` })).code;

for (const { name, remove, again } of [
  { name: "a deleted pod", remove: `${pods}/worker?gracePeriodSeconds=0`, again: () => newPod("worker", "robot") },
  {
    name: "a deleted service account",
    remove: `${accounts}/robot`,
    again: () => make(accounts, { metadata: { name: "robot" } }),
  },
]) {
  test(`the token of ${name} is not accepted, also when another of its name is created`, async () => {
    await server.request("DELETE", `${pods}/worker?gracePeriodSeconds=0`);
    await server.request("DELETE", `${accounts}/robot`);
    await make(accounts, { metadata: { name: "robot" } });
    await newPod("worker", "robot");
    const [before, then, last] = await Promise.all([3600, 3601, 3602].map((seconds) => podToken("robot", "worker", seconds)));
    assert.equal(await codeFor(before as string), 200);
    assert.equal((await server.request("DELETE", remove)).code, 200);
    assert.equal(await codeFor(then as string), 401);
    await again();
    assert.equal(await codeFor(last as string), 401);
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: last } };
    const { body } = await server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review);
    assert.notEqual(body.status.authenticated, true);
  });
}

test("tokens are refused for what they cannot be bound to, and a dry run gives one", async () => {
  const { uid } = (await make(accounts, { metadata: { name: "requested" } })).metadata;
  await newPod("of-requested", "requested");
  await make(accounts, { metadata: { name: "other" } });
  await make("/api/v1/namespaces/default/secrets", { metadata: { name: "s" } });
  const requestToken = (spec: object, query = "", account = "requested") =>
    server.request("POST", `${accounts}/${account}/token${query}`, { spec });
  const bind = (ref: object, account?: string) => requestToken({ boundObjectRef: { apiVersion: "v1", ...ref } }, "", account);
  for (const { answer, code, message } of [
    {
      answer: await bind({ kind: "Node", name: "n" }),
      code: 400,
      message: "cannot bind token to object of type /v1, Kind=Node",
    },
    {
      answer: await bind({ apiVersion: "apps/v1", kind: "Pod", name: "of-requested" }),
      code: 400,
      message: "cannot bind token to object of type apps/v1, Kind=Pod",
    },
    {
      answer: await bind({ kind: "Pod", name: "of-requested" }, "other"),
      code: 400,
      message: 'cannot bind token for serviceaccount "other" to pod running with different serviceaccount name.',
    },
    { answer: await bind({ kind: "Secret", name: "gone" }), code: 404, message: 'secrets "gone" not found' },
    {
      answer: await bind({ kind: "Secret", name: "s", uid }),
      code: 409,
      message: `Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    },
    {
      answer: await requestToken({ expirationSeconds: 10 }),
      code: 422,
      message:
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes',
    },
  ]) {
    assert.equal(answer.body.message, message);
    assert.equal(answer.code, code);
  }
  const dry = await requestToken({}, "?dryRun=All");
  assert.equal(dry.code, 201, dry.text);
  assert.equal(await codeFor(dry.body.status.token), 200);
});

test("a token that is only good because its life was extended is counted, and the audit says how late it is", async () => {
  const { uid } = (await make(accounts, { metadata: { name: "late" } })).metadata;
  const now = Math.floor(Date.now() / 1000);
  const sign = (warnafter: number): Promise<string> =>
    new CompactSign(
      Buffer.from(
        JSON.stringify({
          ...{
            iss: issuer,
            aud: [issuer],
            sub: "system:serviceaccount:default:late",
            exp: now + 3600,
            iat: now - 7200,
            nbf: now - 7200,
          },
          "kubernetes.io": { namespace: "default", serviceaccount: { name: "late", uid }, warnafter },
        }),
      ),
    )
      .setProtectedHeader({ alg: "RS256" })
      .sign(createPrivateKey(keyPem));
  const stale = await sign(now - 100);
  // The second request is answered by the token cache: it is not counted, and audited with the same annotation.
  assert.deepEqual([await codeFor(stale), await codeFor(stale), await codeFor(await sign(now + 100))], [200, 200, 200]);
  const metrics = (await server.request("GET", "/metrics")).text;
  assert.match(metrics, /^serviceaccount_stale_tokens_total 1$/m);
  assert.match(metrics, /^serviceaccount_valid_tokens_total 1$/m);
  assert.match(metrics, /^serviceaccount_legacy_tokens_total 0$/m);
  const said = await waitFor(
    () => {
      const found = [...readFileSync(auditLog, "utf8").matchAll(/"authentication.k8s.io\/stale-token":"([^"]+)"/g)];
      return found.length >= 2 && found.map(([, value]) => value ?? "");
    },
    { what: "the audit of both requests" },
  );
  const mostSeconds = Math.ceil(Date.now() / 1000) - now + 100;
  for (const value of said) {
    const [, seconds] = /^subject: system:serviceaccount:default:late, seconds after warning threshold: (\d+)$/.exec(value) ?? [];
    assert.ok(Number(seconds) >= 100 && Number(seconds) <= mostSeconds, value);
  }
});

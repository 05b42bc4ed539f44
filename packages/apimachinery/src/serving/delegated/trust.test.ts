import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { internalError, StatusError } from "../../objects/errors/status-error.ts";
import { configMaps } from "../../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { discardLogger } from "../../process/logging/logger.ts";
import { newFakeClient } from "../../testing/fake-client.ts";
import { settle } from "../../testing/wait-for.ts";
import { newCa } from "../certificates.ts";
import { openTrust, type TrustFlags } from "./trust.ts";

const none: TrustFlags = {
  "client-ca-file": "",
  "authentication-skip-lookup": false,
  "authentication-tolerate-lookup-failure": false,
  "requestheader-client-ca-file": "",
  "requestheader-allowed-names": ["flag-name"],
  "requestheader-username-headers": ["flag-user"],
  "requestheader-group-headers": ["flag-group"],
  "requestheader-extra-headers-prefix": ["flag-extra-"],
};
const metadata = { namespace: "kube-system", name: "extension-apiserver-authentication" };
let pem = "";
let published: Record<string, string> = {};
before(async () => {
  pem = (await newCa({ commonName: "ca" })).certPem;
  published = {
    "client-ca-file": pem,
    "requestheader-client-ca-file": pem,
    "requestheader-allowed-names": '["proxy"]',
    "requestheader-username-headers": '["X-User","X-Other-User"]',
    "requestheader-group-headers": '["X-Group"]',
    "requestheader-extra-headers-prefix": '["X-Extra-"]',
  };
});

async function open(t: TestContext, flags: Partial<TrustFlags> = {}, data?: Record<string, string>, isAlone = false) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const put = (next: Record<string, string>): void => client.put(configMaps, { metadata, data: next } as never);
  if (data !== undefined) put(data);
  const ending = new AbortController();
  t.after(() => ending.abort());
  const logged: string[] = [];
  const log = {
    ...discardLogger,
    warn: (text: string) => void logged.push(text),
    error: (_: string, err: unknown) => void logged.push((err as Error).message),
  };
  const options = { flags: { ...none, ...flags }, client: isAlone ? undefined : client, clock, log, signal: ending.signal };
  const trust = await openTrust(options);
  await settle();
  const proxy = () => {
    const { pool: _, ...rest } = trust.frontProxy() ?? {};
    return rest;
  };
  return { client, put, trust, proxy, logged };
}
const ofCluster = {
  allowedNames: ["proxy"],
  usernameHeaders: ["X-User", "X-Other-User"],
  groupHeaders: ["X-Group"],
  extraHeaderPrefixes: ["X-Extra-"],
};

/** A file with the authority. */
function aFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-trust-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "ca.crt");
  writeFileSync(path, pem);
  return path;
}

test("what no file says is read from the cluster: each header from its own list", async (t) => {
  const { trust, proxy } = await open(t, {}, published);
  await trust.lookedUp;
  assert.notEqual(trust.clientCa(), undefined);
  assert.deepEqual(proxy(), ofCluster);
});

test("a file wins over the cluster's, for clients and for front proxies separately", async (t) => {
  const file = aFile(t);
  const other = (await newCa({ commonName: "other" })).certPem;
  for (const inCluster of ["", other]) {
    const { trust } = await open(t, { "client-ca-file": file }, { ...published, "client-ca-file": inCluster });
    assert.equal(trust.clientCa()?.pem, pem);
  }
  const clients = await open(t, { "client-ca-file": file }, published);
  assert.deepEqual(clients.proxy(), ofCluster);
  const proxies = await open(t, { "requestheader-client-ca-file": file }, published);
  assert.notEqual(proxies.trust.clientCa(), undefined);
  assert.deepEqual(proxies.proxy(), {
    allowedNames: ["flag-name"],
    usernameHeaders: ["flag-user"],
    groupHeaders: ["flag-group"],
    extraHeaderPrefixes: ["flag-extra-"],
  });
});

test("with both files, with --authentication-skip-lookup and without a server nothing is looked up", async (t) => {
  const file = aFile(t);
  const both = await open(t, { "client-ca-file": file, "requestheader-client-ca-file": file }, published);
  const skipped = await open(t, { "authentication-skip-lookup": true }, published);
  const alone = await open(t, {}, published, true);
  for (const { client } of [both, skipped, alone]) assert.deepEqual(client.actions, []);
  assert.deepEqual([skipped.trust.clientCa(), skipped.proxy(), skipped.logged], [undefined, {}, []]);
  assert.match(alone.logged.join(), /^--authentication-kubeconfig is not set/);
  await alone.trust.lookedUp;
});

test("a change is followed, part by part; an invalid part keeps what it was", async (t) => {
  const { put, trust, proxy, logged } = await open(t, {}, published);
  put({ ...published, "requestheader-allowed-names": '["a","b"]' });
  await settle();
  assert.deepEqual(proxy(), { ...ofCluster, allowedNames: ["a", "b"] });
  for (const list of ['["c",1]', '"c"', "{"]) {
    put({ ...published, "requestheader-allowed-names": list, "requestheader-group-headers": '["X-New"]' });
    await settle();
    assert.deepEqual(proxy(), { ...ofCluster, allowedNames: ["a", "b"] }, list);
  }
  assert.equal(logged.length, 3);
  assert.match(logged[0] ?? "", /^not a list of strings: \["c",1\]$/);
  put({ ...published, "client-ca-file": "no certificate" });
  await settle();
  assert.notEqual(trust.clientCa(), undefined);
  assert.equal(logged.length, 4);
});

test("an authority that is no longer published is no longer trusted; without lists a proxy has no headers", async (t) => {
  const { put, trust, proxy } = await open(t, {}, published);
  put({ "requestheader-client-ca-file": pem, "requestheader-allowed-names": "" });
  await settle();
  assert.equal(trust.clientCa(), undefined);
  assert.deepEqual(proxy(), { allowedNames: [], usernameHeaders: [], groupHeaders: [], extraHeaderPrefixes: [] });
  put({ ...published, "requestheader-client-ca-file": "" });
  await settle();
  assert.deepEqual([proxy(), trust.clientCa() === undefined], [{}, false]);
});

test("a configuration that is deleted stays in force, and one that comes later is read", async (t) => {
  const { client, put, trust, proxy } = await open(t);
  assert.deepEqual([trust.clientCa(), proxy()], [undefined, {}]);
  put(published);
  await settle();
  assert.deepEqual(proxy(), ofCluster);
  client.remove(configMaps, "kube-system/extension-apiserver-authentication");
  await settle();
  assert.notEqual(trust.clientCa(), undefined);
  assert.deepEqual(proxy(), ofCluster);
});

for (const { name, failures, want } of [
  { name: "one refusal", failures: [403], want: "followed" },
  { name: "two refusals", failures: [403, 403], want: "refused" },
  { name: "a refusal between failures of the server", failures: [500, 403, 500, 403], want: "followed" },
  { name: "requests to wait", failures: [429, 429, 429], want: "followed" },
] as const) {
  test(`after ${name} the configuration is ${want === "followed" ? "read" : "given up"}`, async (t) => {
    const clock = newFakeClock();
    const client = newFakeClient({ clock });
    client.put(configMaps, { metadata, data: published } as never);
    const left: number[] = [...failures];
    client.react("get", "configmaps", () => {
      const code = left.shift();
      if (code === undefined) return;
      throw new StatusError({ ...internalError(new Error(`answer ${code}`)).status, code });
    });
    const ending = new AbortController();
    t.after(() => ending.abort());
    const trust = await openTrust({ flags: none, client, clock, log: discardLogger, signal: ending.signal });
    let outcome = "";
    trust.lookedUp.then(
      () => (outcome = "followed"),
      () => (outcome = "refused"),
    );
    for (let turn = 0; turn < 100 && outcome === ""; turn++) {
      await settle();
      await clock.advance(6_000);
    }
    assert.equal(outcome, want);
  });
}

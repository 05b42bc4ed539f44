import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { startTestServer, type TestServer } from "../../testing/start-test-server.ts";
import { newObjectCodec } from "../object-codec.ts";
import { aConfigMap, suiteResource, unlimitedEntries } from "../testing.ts";
import { newEtcdClient } from "./client.ts";
import { parseEncryptionConfig, readEncryptionConfig } from "./encryption-config.ts";
import { firstWrites } from "./encryption-providers.ts";
import { newLeases } from "./leases.ts";
import { EtcdStore } from "./store.ts";
import { isKeyOutOfReach, KeyOutOfReach } from "./transformer.ts";

const key = (name: string, bytes = 32): object => ({ name, secret: randomBytes(bytes).toString("base64") });
const configOf = (providers: object[], resources = ["secrets"]): string =>
  JSON.stringify({
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "EncryptionConfiguration",
    resources: [{ resources, providers }],
  });
const secrets = { group: "", resource: "secrets" };
const transformerOf = (providers: object[]) => parseEncryptionConfig(configOf(providers)).transformerFor(secrets);

for (const provider of ["aescbc", "aesgcm", "secretbox"]) {
  test(`${provider}: the value begins with provider and key, and says nothing else`, async () => {
    const transformer = transformerOf([{ [provider]: { keys: [key("key1")] } }]);
    assert.ok(transformer);
    const plain = Buffer.from("a very secret value ".repeat(50));
    const stored = await transformer.toStored(plain, "/registry/secrets/a/b");
    const prefix = `k8s:enc:${provider}:v1:key1:`;
    assert.equal(stored.subarray(0, prefix.length).toString(), prefix);
    assert.equal(stored.includes("secret value"), false);
    assert.deepEqual(transformer.fromStored(stored, "/registry/secrets/a/b"), { value: plain, stale: false });
    const again = await transformer.toStored(plain, "/registry/secrets/a/b");
    assert.notDeepEqual(again, stored, "the nonce differs");
    assert.throws(() => transformer.fromStored(stored.subarray(0, prefix.length + 8), "/registry/secrets/a/b"), {
      message: "the stored data was shorter than the required size",
    });
  });
}

test("reads what aescbc wrote elsewhere: IV, then blocks with PKCS #7", () => {
  const secret = Buffer.from("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "hex").toString("base64");
  const transformer = transformerOf([{ aescbc: { keys: [{ name: "k", secret }] } }]);
  // From `openssl enc -aes-256-cbc -K 0001… -iv 00…`.
  const blocks = Buffer.from("002709148c111923823db6f22147c4fd", "hex");
  const stored = Buffer.concat([Buffer.from("k8s:enc:aescbc:v1:k:"), Buffer.alloc(16), blocks]);
  assert.deepEqual(transformer?.fromStored(stored, "/k"), { value: Buffer.from("plain value 15!"), stale: false });
});

test("aesgcm binds a value to its key in etcd", async () => {
  const transformer = transformerOf([{ aesgcm: { keys: [key("k", 16)] } }]);
  const stored = (await transformer?.toStored(Buffer.from("x"), "/registry/secrets/a/b")) as Buffer;
  assert.throws(() => transformer?.fromStored(stored, "/registry/secrets/a/other"), {
    message: "cipher: message authentication failed",
  });
});

test("the first provider and key write, every one reads, and what another one wrote is stale", async () => {
  const [one, two] = [key("one"), key("two")];
  const make = (providers: object[]) => transformerOf(providers);
  const old = make([{ aescbc: { keys: [one] } }]);
  const stored = (await old?.toStored(Buffer.from("v"), "/k")) as Buffer;
  for (const { name, providers, stale } of [
    { name: "the same", providers: [{ aescbc: { keys: [one] } }], stale: false },
    { name: "another key first", providers: [{ aescbc: { keys: [two, one] } }], stale: true },
    { name: "another provider first", providers: [{ secretbox: { keys: [two] } }, { aescbc: { keys: [one] } }], stale: true },
    { name: "plain text first", providers: [{ identity: {} }, { aescbc: { keys: [one] } }], stale: true },
  ]) {
    assert.deepEqual(make(providers)?.fromStored(stored, "/k"), { value: Buffer.from("v"), stale }, name);
  }
  const plain = make([{ aescbc: { keys: [one] } }, { identity: {} }]);
  assert.deepEqual(plain?.fromStored(Buffer.from("v"), "/k"), { value: Buffer.from("v"), stale: true });
  for (const { providers, message } of [
    { providers: [{ aescbc: { keys: [two] } }], message: "no matching key was found for the provided AES transformer" },
    { providers: [{ secretbox: { keys: [two] } }], message: "no matching prefix found" },
    { providers: [{ identity: {} }], message: "no matching prefix found" },
  ]) {
    assert.throws(() => make(providers)?.fromStored(stored, "/k"), { message });
  }
});

test("only the resources that are named, each with the providers of all its entries", () => {
  const config = parseEncryptionConfig(
    configOf([{ aescbc: { keys: [key("a")] } }], ["secrets", "deployments.apps"]),
  ).transformerFor;
  assert.notEqual(config({ group: "apps", resource: "deployments" }), undefined);
  assert.equal(config({ group: "", resource: "deployments" }), undefined);
  assert.equal(config({ group: "", resource: "configmaps" }), undefined);
});

for (const { name, providers, want } of [
  {
    name: "no provider",
    providers: [],
    want: "resources[0].providers: Required value: at least one resources[0].providers is required",
  },
  {
    name: "a key of the wrong length",
    providers: [{ secretbox: { keys: [key("k", 16)] } }],
    want: 'resources[0].providers[0].secretbox.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 16, expected one of [32]',
  },
  {
    name: "a second key of the wrong length",
    providers: [{ aesgcm: { keys: [key("a"), key("b", 17)] } }],
    want: 'resources[0].providers[0].aesgcm.keys[1].secret: Invalid value: "REDACTED": secret is not of the expected length, got 17, expected one of [16 24 32]',
  },
  {
    name: "a key of the wrong length of a second provider",
    providers: [{ identity: {} }, { secretbox: { keys: [key("k", 16)] } }],
    want: 'resources[0].providers[1].secretbox.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 16, expected one of [32]',
  },
  {
    name: "a key that is not base64",
    providers: [{ aescbc: { keys: [{ name: "k", secret: "not base64!" }] } }],
    want: 'resources[0].providers[0].aescbc.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded',
  },
  {
    name: "a key without a name",
    providers: [{ aesgcm: { keys: [{ secret: randomBytes(16).toString("base64") }] } }],
    want: "resources[0].providers[0].aesgcm.keys[0].name: Required value: name is a mandatory field for a key",
  },
  {
    name: "no keys",
    providers: [{ aescbc: {} }],
    want: "resources[0].providers[0].aescbc.keys: Required value: at least one keys is required",
  },
  {
    name: "a KMS without endpoint and name",
    providers: [{ kms: {} }],
    want: '[resources[0].providers[0].kms.name: Required value: name is a mandatory field for a provider, resources[0].providers[0].kms.endpoint: Invalid value: "": endpoint is a mandatory field for a kms]',
  },
  {
    name: "a KMS that is not behind a unix socket",
    providers: [{ kms: { name: "x", endpoint: "tcp://10.0.0.1:1" } }],
    want: 'resources[0].providers[0].kms.endpoint: Invalid value: "tcp://10.0.0.1:1": unsupported scheme "tcp" for KMS provider, only unix is supported',
  },
  {
    name: "a KMS without time",
    providers: [{ kms: { name: "x", endpoint: "unix:///x", timeout: "-1s" } }],
    want: "resources[0].providers[0].kms.timeout: Invalid value: -1s: timeout should be a positive value",
  },
  {
    name: "a KMS cache of size 0",
    providers: [{ kms: { name: "x", endpoint: "unix:///x", cachesize: 0 } }],
    want: "resources[0].providers[0].kms.cachesize: Invalid value: 0: cachesize should be a positive value, or negative to disable",
  },
  {
    name: "a provider that there is not",
    providers: [{ identity: {} }, { rot13: {} }],
    want: 'resources[0].providers[1]: Invalid value: "rot13": provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity',
  },
  {
    name: "a provider of nothing",
    providers: [{}],
    want: 'resources[0].providers[0]: Invalid value: "": provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity',
  },
  {
    name: "a key without a secret and a name",
    providers: [{ aescbc: { keys: [{}] } }],
    want: "[resources[0].providers[0].aescbc.keys[0].name: Required value: name is a mandatory field for a key, resources[0].providers[0].aescbc.keys[0].secret: Required value: secret is a mandatory field for a key]",
  },
  {
    name: "a KMS whose endpoint has no scheme",
    providers: [{ kms: { name: "x", endpoint: "/kms.sock" } }],
    want: 'resources[0].providers[0].kms.endpoint: Invalid value: "/kms.sock": unsupported scheme "" for KMS provider, only unix is supported',
  },
  {
    name: "a KMS whose time is 0",
    providers: [{ kms: { name: "x", endpoint: "unix:///x", timeout: "0s" } }],
    want: "resources[0].providers[0].kms.timeout: Invalid value: 0s: timeout should be a positive value",
  },
  {
    name: "a KMS whose time is no duration",
    providers: [{ kms: { name: "x", endpoint: "unix:///x", timeout: "soon" } }],
    want: 'time: invalid duration "soon"',
  },
  {
    name: "two providers in one",
    providers: [{ kms: { name: "x", endpoint: "unix:///x" }, identity: {} }],
    want: 'resources[0].providers[0]: Invalid value: "kms,identity": more than one provider specified in a single element, should split into different list elements',
  },
]) {
  test(`refuses ${name}`, () => {
    assert.throws(() => parseEncryptionConfig(configOf(providers)), { message: want });
  });
}

test("refuses a document that names neither version nor kind", () => {
  const message = 'no kind "" is registered for version ""';
  assert.throws(() => parseEncryptionConfig(JSON.stringify({ resources: [entry] })), { message });
});

test("a value whose padding is wrong, or that is no number of blocks, is refused", async () => {
  const transformer = transformerOf([{ aescbc: { keys: [key("k")] } }]);
  const stored = (await transformer?.toStored(Buffer.alloc(16), "/k")) as Buffer;
  assert.throws(() => transformer?.fromStored(stored.subarray(0, -16), "/k"), { message: "invalid padding on input" });
  assert.throws(() => transformer?.fromStored(stored.subarray(0, -1), "/k"), {
    message: "the stored data is not a multiple of the block size",
  });
});

const entry = { resources: ["secrets"], providers: [{ identity: {} }] };
for (const { name, document, want } of [
  { name: "an empty file", document: null, want: "EncryptionConfiguration can't be nil" },
  { name: "no entries", document: { resources: [] }, want: "resources: Required value: at least one resources is required" },
  {
    name: "another version",
    document: { apiVersion: "apiserver.config.k8s.io/v2", resources: [entry] },
    want: 'no kind "EncryptionConfiguration" is registered for version "apiserver.config.k8s.io/v2"',
  },
  {
    name: "a second entry without resources",
    document: { resources: [entry, { ...entry, resources: [] }] },
    want: "resources[1].resources: Required value: at least one resources[1].resources is required",
  },
]) {
  test(`refuses ${name}`, () => {
    const kind = { apiVersion: "apiserver.config.k8s.io/v1", kind: "EncryptionConfiguration" };
    assert.throws(() => parseEncryptionConfig(JSON.stringify(document && { ...kind, ...document })), { message: want });
  });
}

test("the file that cannot be used is named", (t) => {
  assert.throws(
    () => readEncryptionConfig("/nowhere/enc.yaml"),
    /error opening encryption provider configuration file "\/nowhere/,
  );
  const path = fileWith(t, "kind: Pod\napiVersion: v1\n");
  assert.throws(() => readEncryptionConfig(path), /error while parsing encryption provider configuration file .*no kind "Pod"/);
});

test("a stale value is written anew by an update that changes nothing, and then not again", async (t) => {
  const etcd = await startEtcd();
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const prefix = `/encryption-${randomUUID()}`;
  const open = (providers: object[]) =>
    new EtcdStore({
      client,
      codec: newObjectCodec(suiteResource, "application/json", unlimitedEntries()),
      leases: newLeases({ client, clock: realClock }),
      etcdPrefix: prefix,
      transformer: parseEncryptionConfig(configOf(providers, ["configmaps"])).transformerFor({
        group: "",
        resource: "configmaps",
      }),
      clock: realClock,
      log: discardLogger,
      turns: new Turns(),
    });
  const raw = async () => (await client.range({ key: `${prefix}/configmaps/web/a` })).kvs[0];
  const [one, two] = [key("one"), key("two")];
  await open([{ aescbc: { keys: [one] } }]).create("web/a", aConfigMap("a", { color: "red" }));
  const rotated = open([{ aescbc: { keys: [two, one] } }]);
  const before = await raw();
  const entry = await rotated.guaranteedUpdate("web/a", (current) => current?.object() as never);
  const after = await raw();
  assert.match(after?.value.toString("latin1") ?? "", /^k8s:enc:aescbc:v1:two:/);
  assert.ok((after?.modRevision ?? 0) > (before?.modRevision ?? 0) && entry.revision === after?.modRevision);
  await rotated.guaranteedUpdate("web/a", (current) => current?.object() as never);
  assert.equal((await raw())?.modRevision, after?.modRevision);
  await assert.rejects(open([{ aescbc: { keys: [one] } }]).get("web/a"), /configmaps\/web\/a/);
});

test("secrets are encrypted in etcd, keys rotate over a restart, and a wrong key is an error that names the secret", async (t) => {
  const [one, two] = [key("one"), key("two")];
  const prefix = `/encryption-${randomUUID()}`;
  const start = (providers: object[], flag = "--encryption-provider-config"): Promise<TestServer> =>
    startTestServer(t, [`--etcd-prefix=${prefix}`, `${flag}=${fileWith(t, configOf(providers))}`]);
  const path = "/api/v1/namespaces/default/secrets";
  const first = await start([{ aescbc: { keys: [one] } }]);
  const etcd = newEtcdClient({ servers: [first.etcdEndpoint] });
  t.after(() => etcd.close());
  const raw = async (name: string): Promise<string> => {
    const { kvs } = await etcd.range({ key: `${prefix}/secrets/default/${name}` });
    return kvs[0]?.value.toString("latin1") ?? "";
  };
  const created = await first.request("POST", path, { metadata: { name: "a" }, stringData: { p: "correct horse" } });
  assert.equal(created.code, 201);
  assert.match(await raw("a"), /^k8s:enc:aescbc:v1:one:/);
  assert.doesNotMatch(await raw("a"), /correct horse/);
  const configMap = { metadata: { name: "a" }, data: { p: "in plain sight" } };
  await first.request("POST", "/api/v1/namespaces/default/configmaps", configMap);
  const { kvs } = await etcd.range({ key: `${prefix}/configmaps/default/a` });
  assert.match(kvs[0]?.value.toString("latin1") ?? "", /in plain sight/);
  await first.stop();

  const second = await start(
    [{ secretbox: { keys: [two] } }, { aescbc: { keys: [one] } }],
    "--experimental-encryption-provider-config",
  );
  const { body: read } = await second.request("GET", `${path}/a`);
  assert.equal(Buffer.from(read.data.p, "base64").toString(), "correct horse");
  assert.equal((await second.request("PUT", `${path}/a`, read)).code, 200);
  assert.match(await raw("a"), /^k8s:enc:secretbox:v1:two:/);
  assert.equal((await second.request("GET", path)).body.items.length, 1);
  await second.stop();

  const third = await start([{ aescbc: { keys: [one] } }]);
  for (const [method, target] of [
    ["GET", `${path}/a`],
    ["GET", path],
    ["DELETE", `${path}/a`],
  ] as const) {
    const { code, body } = await third.request(method, target);
    assert.equal(code, 500, `${method} ${target}`);
    assert.match(body.message, new RegExp(`${prefix}/secrets/default/a`));
  }
  assert.equal((await third.request("GET", `${path}/b`)).code, 404);
});

function fileWith(t: TestContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), "cox-encryption-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "config.yaml");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

test("a value is read with the next provider of its prefix, also when the one before it fails later", async () => {
  const failing = (err: Error, isLate = true) => ({
    ...{ prefix: Buffer.from("p:"), toStored: (value: Buffer) => value },
    fromStored: () => {
      if (!isLate) throw err;
      return Promise.reject(err);
    },
  });
  const reading = { ...failing(new Error("")), fromStored: (value: Buffer) => ({ value, stale: false }) };
  const stored = Buffer.from("p:x");
  const read = async (...providers: (typeof reading)[]) => firstWrites(providers, () => undefined).fromStored(stored, "/k");
  const bad = failing(new Error("bad")) as never;
  assert.deepEqual(await read(bad, reading), { value: Buffer.from("x"), stale: true });
  for (const isLate of [false, true]) {
    const away = failing(new KeyOutOfReach("away"), isLate) as never;
    await assert.rejects(read(bad, away), (err) => isKeyOutOfReach(err) && (err as Error).message === "[bad, away]");
  }
  await assert.rejects(read(bad, bad), (err) => !isKeyOutOfReach(err) && (err as Error).message === "bad");
});

test("a resource of two entries is written with the first one's provider, and read with those of both", async () => {
  const resources = [{ secretbox: { keys: [key("k")] } }, { identity: {} }].map((provider) => ({
    ...{ resources: ["secrets"], providers: [provider] },
  }));
  const config = { apiVersion: "apiserver.config.k8s.io/v1", kind: "EncryptionConfiguration", resources };
  const transformer = parseEncryptionConfig(JSON.stringify(config)).transformerFor(secrets);
  const stored = (await transformer?.toStored(Buffer.from("x"), "/k")) as Buffer;
  assert.match(stored.toString("latin1"), /^k8s:enc:secretbox:v1:k:/);
  assert.deepEqual(transformer?.fromStored(stored, "/k"), { value: Buffer.from("x"), stale: false });
  assert.deepEqual(transformer?.fromStored(Buffer.from("plain"), "/k"), { value: Buffer.from("plain"), stale: true });
});

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { secrets as secretsRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startKmsPlugin } from "../../testing/kms-plugin.ts";
import { startTestServer } from "../../testing/start-test-server.ts";
import { newEtcdClient } from "./client.ts";
import { parseEncryptionConfig } from "./encryption-config.ts";
import { envelopeProvider } from "./envelope.ts";
import { newKmsCheck } from "./kms-health.ts";
import { type KmsService, newKmsService } from "./kms-service.ts";

function directoryOf(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "cox-kms-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const configOf = (providers: object[]): string =>
  JSON.stringify({
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "EncryptionConfiguration",
    resources: [{ resources: ["secrets"], providers }],
  });

test("each value has a separate data key, which the KMS encrypts; what was decrypted before is read at once", async (t) => {
  const path = join(directoryOf(t), "kms.sock");
  const plugin = await startKmsPlugin({ path });
  t.after(() => plugin.stop());
  const make = (cachesize: number, name = "vault") => {
    const kms = { name, endpoint: `unix://${path}`, cachesize };
    return parseEncryptionConfig(configOf([{ kms }])).transformerFor({ group: "", resource: "secrets" });
  };
  const writer = make(1);
  const first = (await writer?.toStored(Buffer.from("one"), "/k/1")) as Buffer;
  assert.deepEqual(plugin.calls.splice(0), ["Version", "Encrypt"]);
  assert.deepEqual(writer?.fromStored(first, "/k/1"), { value: Buffer.from("one"), stale: false });
  const second = await writer?.toStored(Buffer.from("two"), "/k/2");
  assert.match(second.toString("latin1"), /^k8s:enc:kms:v1:vault:\0\x30/);
  assert.equal((await writer?.fromStored(first, "/k/1"))?.value.toString(), "one");
  assert.deepEqual(plugin.calls.splice(0), ["Encrypt", "Decrypt"], "the cache holds one key");

  const uncached = make(-1);
  for (const _ of [1, 2]) assert.equal((await uncached?.fromStored(first, "/k/1"))?.value.toString(), "one");
  assert.deepEqual(plugin.calls.splice(0), ["Version", "Decrypt", "Decrypt"]);
  assert.throws(() => writer?.fromStored(second.subarray(0, 40), "/k/2"), {
    message: "invalid data encountered by envelope transformer: failed to read uint16 length prefixed data",
  });
  assert.throws(() => make(1, "other")?.fromStored(first, "/k/1"), { message: "no matching prefix found" });
});

test("a data key that was decrypted is kept, and one that is too long to be stored is refused", async () => {
  let decrypted = 0;
  const service = {
    encrypt: async (plain: Buffer) => Buffer.concat([Buffer.from("k"), plain]),
    decrypt: async (cipher: Buffer) => {
      decrypted++;
      return cipher.subarray(1);
    },
  };
  const provider = (over: Partial<KmsService> = {}) =>
    envelopeProvider({ name: "vault", service: { ...service, ...over }, cacheSize: 2, metrics: () => undefined });
  const stored = await provider().toStored(Buffer.from("one"), "/k");
  const reader = provider();
  for (let i = 0; i < 2; i++) assert.equal((await reader.fromStored(stored, "/k")).value.toString(), "one");
  assert.equal(decrypted, 1);
  for (const { bytes, isStored } of [
    { bytes: 0xffff, isStored: true },
    { bytes: 0x10000, isStored: false },
  ]) {
    const written = provider({ encrypt: async () => Buffer.alloc(bytes) }).toStored(Buffer.from("one"), "/k");
    if (isStored) await written;
    else await assert.rejects(Promise.resolve(written), { message: "the encrypted data key is longer than 65535 bytes" });
  }
});

test("a plugin is reached at an abstract socket, too; no other endpoint is one", async (t) => {
  for (const [endpoint, message] of [
    ["", "remote KMS provider can't use empty string as endpoint"],
    ["tcp://127.0.0.1:1", 'unsupported scheme "tcp" for remote KMS provider'],
  ] as const) {
    assert.throws(() => newKmsService(endpoint, 1), { message });
  }
  const name = `cox-kms-${randomUUID()}`;
  const plugin = await startKmsPlugin({ path: `\0${name}` });
  t.after(() => plugin.stop());
  const service = newKmsService(`unix:///@${name}`, 60_000);
  assert.equal((await service.decrypt(await service.encrypt(Buffer.from("x")))).toString(), "x");
  assert.deepEqual(plugin.calls, ["Version", "Encrypt", "Decrypt"], "the version is asked for once");
});

test("a plugin that is not there in time, refuses, or speaks another version is an error in gRPC's words", async (t) => {
  const path = join(directoryOf(t), "kms.sock");
  await assert.rejects(
    newKmsService(`unix://${path}`, 150).encrypt(Buffer.from("x")),
    /^Error: failed get version from remote KMS provider: .*DeadlineExceeded/,
  );
  // Long enough for a busy machine: a call that waits for the plugin must not end before it.
  const service = newKmsService(`unix://${path}`, 60_000);
  const refused = async (): Promise<void> =>
    assert.rejects(service.encrypt(Buffer.from("x")), {
      message: "KMS provider api version v1alpha1 is not supported, only v1beta1 is supported now",
    });
  const waiting = refused();
  const old = await startKmsPlugin({ path, version: "v1alpha1" });
  t.after(() => old.stop());
  await waiting;
  await refused();
  await old.stop();
  const plugin = await startKmsPlugin({ path });
  t.after(() => plugin.stop());
  await waitFor(async () => {
    const cipher = await service.encrypt(Buffer.from("x")).catch(() => undefined);
    return cipher !== undefined && (await service.decrypt(cipher)).toString() === "x";
  });
  plugin.refusal = "the key is disabled";
  await assert.rejects(service.decrypt(Buffer.alloc(20)), {
    message: "rpc error: code = PermissionDenied desc = the key is disabled",
  });
});

test("the health check is repeated after 20 s when it succeeded, after 3 s when it failed", async () => {
  const clock = newFakeClock();
  let failing: "encrypt" | "decrypt" | undefined;
  let requests = 0;
  const step = (name: "encrypt" | "decrypt") => async (bytes: Buffer) => {
    if (failing === name) throw new Error("no key");
    return bytes;
  };
  const encrypt = (bytes: Buffer): Promise<Buffer> => {
    requests++;
    return step("encrypt")(bytes);
  };
  const check = newKmsCheck("vault", { encrypt, decrypt: step("decrypt") }, clock);
  await check();
  failing = "encrypt";
  await clock.advance(19_999);
  await check();
  assert.equal(requests, 1);
  await clock.advance(1);
  const message = "failed to perform encrypt section of the healthz check for KMS Provider vault, error: no key";
  await assert.rejects(check(), { message });
  failing = "decrypt";
  await assert.rejects(check(), { message });
  await clock.advance(3_000);
  await assert.rejects(check(), { message: message.replace("encrypt", "decrypt") });
  failing = undefined;
  await clock.advance(3_000);
  await check();
  assert.equal(requests, 4);
  await clock.advance(20_000);
  await Promise.all([check(), check()]);
  assert.equal(requests, 5, "checks at the same time share one request");
});

test("secrets of two servers go through the KMS; watches see them in order, and an outage of the plugin heals", async (t) => {
  const directory = directoryOf(t);
  const path = join(directory, "kms.sock");
  const key = randomBytes(32);
  let plugin = await startKmsPlugin({ path, key });
  t.after(() => plugin.stop());
  const config = join(directory, "config.json");
  writeFileSync(
    config,
    configOf([
      ...["vault", "former"].map((name) => ({ kms: { name, endpoint: `unix://${path}`, timeout: "60s" } })),
      { identity: {} },
    ]),
    {
      mode: 0o600,
    },
  );
  const prefix = `/kms-${randomUUID()}`;
  const flags = [`--etcd-prefix=${prefix}`, `--encryption-provider-config=${config}`];
  const [one, two] = await Promise.all([startTestServer(t, flags), startTestServer(t, flags)]);
  const secrets = "/api/v1/namespaces/default/secrets";
  const secret = (name: string) => ({ metadata: { name }, stringData: { p: "correct horse" } });

  const { body: before } = await two.request("GET", secrets);
  const names = ["a", "b", "c", "d"];
  for (const name of names) assert.equal((await one.request("POST", secrets, secret(name))).code, 201);
  const seen: string[] = [];
  const events = two.client.watch(
    secretsRef,
    { namespace: "default" },
    { resourceVersion: before.metadata.resourceVersion, signal: AbortSignal.timeout(60_000) },
  );
  for await (const { object } of events) {
    seen.push(object.metadata.name as string);
    if (seen.length === names.length) break;
  }
  assert.deepEqual(seen, names);
  const etcd = newEtcdClient({ servers: [one.etcdEndpoint] });
  t.after(() => etcd.close());
  const { kvs } = await etcd.range({ key: `${prefix}/secrets/default/a` });
  assert.match(kvs[0]?.value.toString("latin1") ?? "", /^k8s:enc:kms:v1:vault:/);
  assert.equal(kvs[0]?.value.includes("correct horse"), false);
  const { body: read } = await two.request("GET", `${secrets}/d`);
  assert.equal(Buffer.from(read.data.p, "base64").toString(), "correct horse");
  for (const i of [0, 1]) assert.equal((await two.request("GET", `/readyz/kms-provider-${i}`)).code, 200);

  plugin.refusal = "the key is disabled";
  const refused = await one.request("POST", secrets, secret("e"));
  assert.equal(refused.code, 500);
  assert.equal((await one.request("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "e" } })).code, 201);

  await plugin.stop();
  plugin = await startKmsPlugin({ path, key });
  await waitFor(async () => (await one.request("POST", secrets, secret("e"))).code === 201);
  const { body: after } = await two.request("GET", secrets);
  assert.deepEqual(
    after.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    [...names, "e"],
  );
});

test("a secret that the KMS cannot decrypt for a while is not reported as deleted; its watches continue after it was decrypted", async (t) => {
  const directory = directoryOf(t);
  const prefix = `/kms-${randomUUID()}`;
  const key = randomBytes(32);
  // Each server has its own plugin, with the same key.
  const start = async (name: string) => {
    const path = join(directory, `${name}.sock`);
    const plugin = await startKmsPlugin({ path, key });
    const config = join(directory, `${name}.json`);
    // The reader's calls have to time out; the writer's must not, however busy the machine is.
    const timeout = name === "reader" ? "1s" : "60s";
    const kms = { name: "vault", endpoint: `unix://${path}`, timeout };
    writeFileSync(config, configOf([{ kms }]), { mode: 0o600 });
    const server = await startTestServer(t, [`--etcd-prefix=${prefix}`, `--encryption-provider-config=${config}`]);
    return { server, plugin, startPlugin: () => startKmsPlugin({ path, key }) };
  };
  const [writer, reader] = [await start("writer"), await start("reader")];
  t.after(() => writer.plugin.stop());
  const secrets = "/api/v1/namespaces/default/secrets";
  const secret = (text: string) => ({ metadata: { name: "a" }, data: { p: Buffer.from(text).toString("base64") } });
  const { code, body: created } = await writer.server.request("POST", secrets, secret("before"));
  assert.equal(code, 201);
  const listed = async () => (await reader.server.request("GET", `${secrets}?resourceVersion=0`)).body.items;
  await waitFor(async () => (await listed()).length === 1);

  await reader.plugin.stop();
  assert.equal((await writer.server.request("PUT", `${secrets}/a`, secret("after"))).code, 200);
  const seen: string[] = [];
  const watching = (async () => {
    let { resourceVersion } = created.metadata;
    for (;;) {
      const options = { resourceVersion, signal: AbortSignal.timeout(60_000) };
      try {
        for await (const { type, object } of reader.server.client.watch(secretsRef, { namespace: "default" }, options)) {
          const text = (object as { data?: Record<string, string> }).data?.["p"] ?? "";
          seen.push(`${type} ${Buffer.from(text, "base64")}`);
          if (seen.at(-1) === "MODIFIED after") return;
          resourceVersion = object.metadata.resourceVersion;
        }
      } catch (err) {
        // The watch resumes from etcd, where the secret cannot be decrypted either.
        assert.match(String(err), /unable to decode the value of|KMS/);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  // The event of a later change is delivered only after the pending one.
  await writer.server.request("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "later" } });
  await waitFor(async () => (await reader.server.request("GET", "/api/v1/namespaces/default/configmaps/later")).code === 200);
  assert.deepEqual(seen, []);
  const back = await reader.startPlugin();
  t.after(() => back.stop());
  await waitFor(async () => Buffer.from((await listed())[0].data.p, "base64").toString() === "after");
  await waitFor(() => seen.length > 0, { what: "the change" });
  assert.deepEqual(seen, ["MODIFIED after"]);
  await watching;
});

test("fields of answers that are unknown are skipped, whatever their type", async (t) => {
  const path = join(directoryOf(t), "kms.sock");
  const fields = {
    varint: [24, 1],
    fixed64: [33, ...Array(8).fill(10)],
    bytes: [42, 2, 10, 10],
    fixed32: [53, ...Array(4).fill(10)],
  };
  const plugin = await startKmsPlugin({ path, leading: Buffer.from(Object.values(fields).flat()) });
  t.after(() => plugin.stop());
  const service = newKmsService(`unix://${path}`, 60_000);
  assert.equal((await service.decrypt(await service.encrypt(Buffer.from("x")))).toString(), "x");
});

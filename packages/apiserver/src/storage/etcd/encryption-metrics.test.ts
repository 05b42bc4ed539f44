import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { startKmsPlugin } from "../../testing/kms-plugin.ts";
import { startTestServer } from "../../testing/start-test-server.ts";
import { parseEncryptionConfig } from "./encryption-config.ts";
import { newEncryptionMetrics } from "./encryption-metrics.ts";
import type { Transformer } from "./transformer.ts";

function counting(providers: object[]) {
  const registry = newMetricsRegistry();
  const clock = newFakeClock();
  const config = parseEncryptionConfig(
    JSON.stringify({
      apiVersion: "apiserver.config.k8s.io/v1",
      kind: "EncryptionConfiguration",
      resources: [{ resources: ["secrets"], providers }],
    }),
  );
  config.countIn(newEncryptionMetrics(registry, clock));
  const transformer = config.transformerFor({ group: "", resource: "secrets" }) as Transformer;
  /** The samples whose name begins with `name`, in order, without timing values. */
  const shown = async (name: string): Promise<string[]> =>
    (await registry.render()).split("\n").filter((line) => line.startsWith(`apiserver_${name}`));
  return { transformer, clock, shown };
}

const operations = (direction: string, prefix: string, status: string, count: number): string =>
  `apiserver_storage_transformation_operations_total{transformation_type="${direction}",transformer_prefix="${prefix}",status="${status}"} ${count}`;

const aKey = { keys: [{ name: "key1", secret: randomBytes(32).toString("base64") }] };

test("values are counted by provider and by key, plain text under its own name", async () => {
  const { transformer, shown } = counting([{ aescbc: aKey }, { identity: {} }]);
  const stored = await transformer.toStored(Buffer.from("one"), "/k");
  await transformer.fromStored(stored, "/k");
  await transformer.fromStored(Buffer.from("plain"), "/k");
  assert.throws(() => transformer.fromStored(stored.subarray(0, stored.length - 1), "/k"));
  assert.deepEqual(
    new Set(await shown("storage_transformation_operations_total")),
    new Set([
      operations("to_storage", "key1:", "OK", 1),
      operations("to_storage", "k8s:enc:aescbc:v1:", "OK", 1),
      operations("from_storage", "key1:", "OK", 1),
      operations("from_storage", "k8s:enc:aescbc:v1:", "OK", 1),
      operations("from_storage", "identity", "OK", 1),
      operations("from_storage", "key1:", "Unknown", 1),
      operations("from_storage", "k8s:enc:aescbc:v1:", "Unknown", 1),
    ]),
  );
  assert.ok(
    (await shown("storage_transformation_duration_seconds_count")).includes(
      'apiserver_storage_transformation_duration_seconds_count{transformation_type="from_storage"} 3',
    ),
  );
});

test("plain text that is written is counted under no prefix", async () => {
  const { transformer, shown } = counting([{ identity: {} }, { aescbc: aKey }]);
  await transformer.toStored(Buffer.from("one"), "/k");
  assert.deepEqual(await shown("storage_transformation_operations_total"), [operations("to_storage", "", "OK", 1)]);
});

test("plain text that no transformer accepts is unknown", async () => {
  const { transformer, shown } = counting([{ secretbox: aKey }]);
  assert.throws(() => transformer.fromStored(Buffer.from("plain"), "/k"));
  assert.deepEqual(await shown("storage_transformation_operations_total"), [operations("from_storage", "unknown", "Unknown", 1)]);
});

function socketOf(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "cox-kms-metrics-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, "kms.sock");
}

test("a KMS provider counts its data keys, requests for new ones, and refusals by their code", async (t) => {
  const path = socketOf(t);
  const plugin = await startKmsPlugin({ path });
  t.after(() => plugin.stop());
  const { transformer, clock, shown } = counting([{ kms: { name: "vault", endpoint: `unix://${path}`, cachesize: 4 } }]);
  const first = await transformer.toStored(Buffer.from("one"), "/1");
  await clock.advance(90_000);
  await transformer.toStored(Buffer.from("two"), "/2");
  assert.deepEqual(await shown("envelope_encryption_dek_cache_fill_percent"), [
    "apiserver_envelope_encryption_dek_cache_fill_percent 0.5",
  ]);
  assert.deepEqual(await shown("storage_data_key_generation_duration_seconds_count"), [
    "apiserver_storage_data_key_generation_duration_seconds_count 2",
  ]);
  const between = "envelope_encryption_dek_cache_inter_arrival_time_seconds";
  assert.deepEqual(await shown(`${between}_sum`), [`apiserver_${between}_sum{transformation_type="to_storage"} 90`]);
  for (const line of [
    `apiserver_${between}_bucket{transformation_type="to_storage",le="60"} 1`,
    `apiserver_${between}_bucket{transformation_type="to_storage",le="120"} 2`,
  ]) {
    assert.ok((await shown(`${between}_bucket`)).includes(line), line);
  }
  await transformer.fromStored(first, "/1");
  const misses = "storage_envelope_transformation_cache_misses_total";
  assert.deepEqual(await shown(misses), [`apiserver_${misses} 0`]);
  plugin.refusal = "the key is disabled";
  const foreign = Buffer.concat([Buffer.from("k8s:enc:kms:v1:vault:\0\x02ab"), randomBytes(32)]);
  await assert.rejects(Promise.resolve(transformer.fromStored(foreign, "/3")));
  assert.deepEqual(await shown(misses), [`apiserver_${misses} 1`]);
  assert.ok(
    (await shown("storage_transformation_operations_total")).includes(
      operations("from_storage", "k8s:enc:kms:v1:vault:", "PermissionDenied", 1),
    ),
  );
});

test("a server without encryption shows the names too", async (t) => {
  const server = await startTestServer(t);
  const { text } = await server.request("GET", "/metrics");
  for (const line of [
    "apiserver_envelope_encryption_dek_cache_fill_percent 0",
    "apiserver_storage_data_key_generation_failures_total 0",
    "apiserver_storage_envelope_transformation_cache_misses_total 0",
  ]) {
    assert.ok(text.includes(`\n${line}\n`), line);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { type CipherName, encryptionProvider, firstWrites, identityProvider } from "./encryption-providers.ts";
import type { Transformer } from "./transformer.ts";

const keys = ["a", "b", "c"].map((name, i) => ({ name, secret: Buffer.alloc(32, i + 1) }));
const noMetrics = (): undefined => undefined;
const text = Buffer.from("secret");

async function readBack(by: Transformer, stored: Buffer, etcdKey = "/registry/secrets/a") {
  const { value, stale } = await by.fromStored(stored, etcdKey);
  return [value.toString(), stale];
}

for (const name of ["aescbc", "aesgcm", "secretbox"] satisfies CipherName[]) {
  test(`${name}: a value of any key but the first is read and has to be written again`, async () => {
    const all = encryptionProvider(name, keys, noMetrics);
    for (const [i, key] of keys.entries()) {
      const stored = await encryptionProvider(name, [key], noMetrics).toStored(text, "/registry/secrets/a");
      assert.deepEqual(await readBack(all, stored), ["secret", i > 0], key.name);
    }
    assert.deepEqual(await readBack(all, await all.toStored(text, "/registry/secrets/a")), ["secret", false]);
  });
}

test("a value of any provider but the first is read and has to be written again", async () => {
  const providers = [
    encryptionProvider("secretbox", keys, noMetrics),
    encryptionProvider("aesgcm", keys, noMetrics),
    encryptionProvider("aescbc", keys, noMetrics),
    identityProvider,
  ];
  const all = firstWrites(providers, noMetrics);
  for (const [i, provider] of providers.entries()) {
    const stored = await firstWrites([provider], noMetrics).toStored(text, "/registry/secrets/a");
    assert.deepEqual(await readBack(all, stored), ["secret", i > 0], provider.prefix.toString());
  }
});

test("of two keys of one name the one that fits is taken, and a value under another etcd key is refused", async () => {
  const [first, second] = keys.map(({ secret }) => ({ name: "same", secret }));
  const both = encryptionProvider("aesgcm", [first, second] as never, noMetrics);
  const stored = await encryptionProvider("aesgcm", [second] as never, noMetrics).toStored(text, "/registry/secrets/a");
  assert.deepEqual(await readBack(both, stored), ["secret", true]);
  await assert.rejects(async () => readBack(both, stored, "/registry/secrets/b"), /message authentication failed/);
});

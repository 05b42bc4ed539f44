import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CipherName,
  encryptionProvider,
  firstWrites,
  identityProvider,
  type PrefixedTransformer,
} from "./encryption-providers.ts";
import { isKeyOutOfReach, KeyOutOfReach, type Transformer } from "./transformer.ts";

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

test("the errors of all providers of a value's prefix are named, also of those that fail later", async () => {
  const failing = (prefix: string, message: string, later: boolean): PrefixedTransformer => ({
    prefix: Buffer.from(prefix),
    toStored: (value) => value,
    fromStored() {
      if (later) return Promise.reject(new Error(message));
      throw new Error(message);
    },
  });
  for (const [first, second] of [
    [true, false],
    [false, true],
    [true, true],
  ] as const) {
    const all = firstWrites([failing("k:", "one", first), failing("k:", "two", second), identityProvider], noMetrics);
    assert.deepEqual(await readBack(all, Buffer.from("k:x")), ["k:x", true], "the last one reads it");
    const two = firstWrites([failing("k:", "one", first), failing("k:", "two", second), failing("m:", "no", true)], noMetrics);
    await assert.rejects(async () => readBack(two, Buffer.from("k:x")), { message: "[one, two]" });
    await assert.rejects(async () => readBack(two, Buffer.from("m:x")), { message: "no" });
    await assert.rejects(async () => readBack(two, Buffer.from("n:x")), { message: "no matching prefix found" });
  }
});

test("a value that one of its providers may read later is not lost, whatever the others say", async () => {
  const failing = (err: Error): PrefixedTransformer => ({
    prefix: Buffer.from("k:"),
    toStored: (value) => value,
    fromStored: () => Promise.reject(err),
  });
  for (const { errors, want } of [
    { errors: [new Error("bad"), new KeyOutOfReach("away")], want: true },
    { errors: [new KeyOutOfReach("away"), new Error("bad")], want: true },
    { errors: [new Error("bad"), new Error("worse")], want: false },
  ]) {
    const all = firstWrites(errors.map(failing), noMetrics);
    const thrown = await readBack(all, Buffer.from("k:x")).catch((err: unknown) => err);
    assert.deepEqual([thrown instanceof Error, isKeyOutOfReach(thrown)], [true, want]);
  }
});

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { secretbox } from "./encryption-providers.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");
const etcdKey = "/registry/secrets/default/s";

test("opens the box of NaCl's own tests", () => {
  const key = hex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
  const nonce = hex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
  const message = hex(`be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c6129
    6cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924
    ca1c60902e52f0a089bc76897040e082f937763848645e0705`);
  const box = hex(`f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0df
    c17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732b
    c0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5`);
  assert.deepEqual(secretbox.open(Buffer.concat([nonce, box]), key, etcdKey), message);
});

test("opens what it sealed, whatever the length, and nothing that was changed or cut", () => {
  const key = randomBytes(32);
  for (const length of [0, 1, 15, 16, 31, 32, 33, 63, 64, 65, 1000, 5000]) {
    const message = randomBytes(length);
    const sealed = secretbox.seal(message, key, etcdKey);
    assert.equal(sealed.length, 24 + 16 + length);
    assert.deepEqual(secretbox.open(sealed, key, etcdKey), message);
    assert.throws(() => secretbox.open(sealed, randomBytes(32), etcdKey), /^Error: invalid data$/);
    for (const at of [0, 23, 24, 39, sealed.length - 1]) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] as number) ^ 1;
      assert.throws(() => secretbox.open(changed, key, etcdKey), /^Error: invalid data$/);
    }
    assert.throws(() => secretbox.open(sealed.subarray(0, 39), key, etcdKey), /shorter than the required size/);
  }
});

test("two values never share a nonce", () => {
  const key = randomBytes(32);
  const nonces = new Set(Array.from({ length: 100 }, () => secretbox.seal(Buffer.alloc(1), key, etcdKey).toString("hex", 0, 24)));
  assert.equal(nonces.size, 100);
});

test("10,000 secrets of 2 kB take less than a second of the processor to open", () => {
  const key = randomBytes(32);
  const sealed = secretbox.seal(randomBytes(2000), key, etcdKey);
  const before = process.cpuUsage();
  for (let i = 0; i < 10_000; i++) secretbox.open(sealed, key, etcdKey);
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 1_000_000, `took ${(user + system) / 1000} ms`);
});

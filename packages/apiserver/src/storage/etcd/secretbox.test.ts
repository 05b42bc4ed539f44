import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { openSecretbox, poly1305, sealSecretbox } from "./secretbox.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");

test("agrees with the vector of NaCl's own tests", () => {
  const key = hex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
  const nonce = hex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
  const message = hex(`be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c6129
    6cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924
    ca1c60902e52f0a089bc76897040e082f937763848645e0705`);
  const box = hex(`f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0df
    c17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732b
    c0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5`);
  assert.equal(sealSecretbox(message, nonce, key).toString("hex"), box.toString("hex"));
  assert.deepEqual(openSecretbox(box, nonce, key), message);
});

test("the authenticator agrees with RFC 8439", () => {
  const key = hex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b");
  const tag = poly1305(Buffer.from("Cryptographic Forum Research Group"), key);
  assert.equal(Buffer.from(tag).toString("hex"), "a8061dc1305136c6c22b8baf0c0127a9");
});

test("opens what it sealed, whatever the length, and nothing that was changed", () => {
  const key = randomBytes(32);
  for (const length of [0, 1, 15, 16, 31, 32, 33, 63, 64, 65, 1000, 5000]) {
    const nonce = randomBytes(24);
    const message = randomBytes(length);
    const box = sealSecretbox(message, nonce, key);
    assert.deepEqual(openSecretbox(box, nonce, key), message);
    assert.equal(openSecretbox(box, nonce, randomBytes(32)), undefined);
    const at = length % box.length;
    box[at] = (box[at] as number) ^ 1;
    assert.equal(openSecretbox(box, nonce, key), undefined);
  }
});

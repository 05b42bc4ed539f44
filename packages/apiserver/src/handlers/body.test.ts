import assert from "node:assert/strict";
import { test } from "node:test";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { inputMediaType, readBody } from "./body.ts";
import type { Call } from "./env.ts";

/** A request with this body, and what the audit gets of it. */
function aCall(body: string, verb = "create", more: object = {}) {
  const exchange = new LoopbackExchange({ method: "POST", path: "/", headers: {}, body });
  const audited: string[] = [];
  const audit = { requestPatch: (bytes: Buffer) => void audited.push(String(bytes)) };
  const call = { ctx: { exchange, info: { verb }, audit, ...more }, served: { definition: {} } } as unknown as Call; // cast: all that is read
  return { call, exchange, audited };
}

test("the audit gets the bytes of a patch, and of no other body", async () => {
  for (const [verb, want] of [
    ["patch", ["{}"]],
    ["update", []],
    ["deletecollection", []],
  ] as const) {
    const { call, audited } = aCall("{}", verb);
    assert.equal(String(await readBody(call)), "{}");
    assert.deepEqual(audited, want);
  }
});

test("a body of 3 MiB is read, a longer one and one of very many values are too large", async () => {
  const most = 3 * 1024 * 1024;
  assert.equal((await readBody(aCall("x".repeat(most)).call)).length, most);
  await assert.rejects(readBody(aCall("x".repeat(most + 1)).call), { code: 413 });
  await assert.rejects(readBody(aCall(`[${"{},".repeat(700_000)}{}]`).call), { code: 413 });
});

test("a body that has not arrived yet is waited for as the request says, one that has is not", async () => {
  let waits = 0;
  const receive = (body: Promise<Buffer>): Promise<Buffer> => {
    waits++;
    return body;
  };
  const { call, exchange } = aCall("{}", "create", { receive });
  await readBody(call);
  assert.equal(waits, 0);
  Object.defineProperty(exchange, "bodyIsReceived", { value: false });
  await readBody(call);
  assert.equal(waits, 1);
});

test("a custom resource has no protobuf form", () => {
  const { call, exchange } = aCall("");
  exchange.headers["content-type"] = "application/vnd.kubernetes.protobuf";
  assert.equal(inputMediaType(call), "application/vnd.kubernetes.protobuf");
  Object.assign(call.served.definition, { custom: true });
  assert.throws(() => inputMediaType(call), { code: 415 });
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { Metadata } from "@grpc/grpc-js";
import { type KonnectivityCall, startKonnectivityServer } from "../testing/egress-proxies.ts";
import { connectThroughKonnectivity } from "./konnectivity.ts";
import { decodePacket } from "./konnectivity-packets.ts";

/** A konnectivity server with a handler for calls, and a client. @param onCall returns `true` to skip the default handling */
async function aServer(t: TestContext, onCall: (call: KonnectivityCall) => boolean) {
  const directory = mkdtempSync(join(tmpdir(), "cox-konnectivity-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const at = join(directory, "k.sock");
  const server = await startKonnectivityServer({ at, portOf: (target) => Number(target.split(":")[1]), onCall });
  t.after(() => server.stop());
  const dial = async (target: string, { signal } = new AbortController()) => {
    const connection = connect(at);
    await once(connection, "connect");
    return connectThroughKonnectivity(connection, undefined, target, signal);
  };
  return { server, dial };
}

/** Unexpected responses of a server. */
const status = (code: number, details: string) => ({ code, details, metadata: new Metadata() });
for (const { name, says, message } of [
  {
    name: "knows no such service",
    says: (call: KonnectivityCall) => call.emit("error", status(12, "unknown service ProxyService")),
    message: "rpc error: code = Unimplemented desc = unknown service ProxyService",
  },
  {
    name: "closes the dial",
    says: (call: KonnectivityCall, random: string) => call.write({ type: "DIAL_CLS", closeDial: { random } }),
    message: "dial closed",
  },
  { name: "ends the call", says: (call: KonnectivityCall) => call.end(), message: "tunnel closed" },
  {
    name: "sends a packet of 5 MiB",
    says: (call: KonnectivityCall) => call.write({ type: "DATA", data: { connectID: 1, data: Buffer.alloc(5 * 1024 * 1024) } }),
    message: /^rpc error: code = ResourceExhausted desc = grpc: received message larger than max \(\d+ vs\. 4194304\)$/,
  },
]) {
  test(`a konnectivity server that ${name} refuses`, async (t) => {
    const { dial } = await aServer(t, (call) => {
      call.on("data", ({ dialRequest }) => says(call, dialRequest.random));
      return true;
    });
    await assert.rejects(dial("a:1"), { message });
  });
}

test("packets for unknown connections and responses to unknown dials are ignored", async (t) => {
  // IDs beyond Number.MAX_SAFE_INTEGER.
  const [mine, another] = ["9007199254740993", "9007199254740992"];
  const { dial } = await aServer(t, (call) => {
    call.on("data", ({ type, dialRequest }) => {
      if (type !== "DIAL_REQ") return;
      const { random } = dialRequest;
      call.write({ type: "DIAL_RSP", dialResponse: { connectID: 1, random: 5, error: "not yours" } });
      call.write({ type: "DIAL_RSP", dialResponse: { connectID: mine, random } });
      call.write({ type: "DATA", data: { connectID: another, data: Buffer.from("no") } });
      call.write({ type: "DATA", data: { connectID: mine, data: Buffer.from("yes") } });
      call.write({ type: "CLOSE_RSP", closeResponse: { connectID: another } });
      call.write({ type: "CLOSE_RSP", closeResponse: { connectID: mine } });
    });
    return true;
  });
  assert.equal(String(Buffer.concat(await (await dial("a:1")).toArray())), "yes");
});

test("a konnectivity server gets one close packet for a connection, and its call ends", async (t) => {
  const behind = createServer((socket) => void socket.pipe(socket));
  behind.listen(0, "127.0.0.1");
  await once(behind, "listening");
  t.after(() => void behind.close());
  let calls = 0;
  const { server, dial } = await aServer(t, (call) => {
    calls++;
    for (const event of ["cancelled", "end"]) call.once(event, () => (calls = 0));
    return false;
  });
  const timers = [t.mock.method(globalThis, "setTimeout"), t.mock.method(globalThis, "clearTimeout")] as const;
  const made = await dial(`127.0.0.1:${(behind.address() as AddressInfo).port}`);
  assert.equal(calls, 1);
  made.write("x");
  made.destroySoon();
  await waitFor(() => calls === 0, { what: "the call to end" });
  assert.deepEqual(server.packets, ["DIAL_REQ", "DATA", "CLOSE_REQ"]);
  const [patience, ...others] = timers[0].mock.calls.filter(({ arguments: [, ms] }) => ms === 10_000);
  assert.deepEqual([patience?.result?.hasRef(), others.length], [false, 0]);
  const isCancelled = () => timers[1].mock.calls.some(({ arguments: [timer] }) => timer === patience?.result);
  await waitFor(isCancelled, { what: "the end of the patience" });
});

test("a server that does not answer a close is abandoned after 10 s", async (t) => {
  let isOver = false;
  const { dial } = await aServer(t, (call) => {
    call.once("cancelled", () => (isOver = true));
    call.on("data", ({ type, dialRequest }) => {
      if (type === "DIAL_REQ") call.write({ type: "DIAL_RSP", dialResponse: { connectID: 1, random: dialRequest.random } });
    });
    return true;
  });
  const made = await dial("a:1");
  t.mock.timers.enable({ apis: ["setTimeout"] });
  made.end();
  await once(made, "finish");
  t.mock.timers.tick(9_999);
  assert.ok(!made.destroyed);
  t.mock.timers.tick(1);
  assert.ok(made.destroyed);
  t.mock.timers.reset();
  await waitFor(() => isOver, { what: "the call to end" });
});

test("bytes that are no packet are refused, or say nothing of anybody's", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        const packet = decodePacket(bytes);
        assert.ok(["dialled", "dial-closed", "data", "closed", "other"].includes(packet.type));
      } catch (err) {
        assert.match((err as Error).message, /index out of range|invalid|illegal|truncated/i);
      }
    }),
  );
});

test("a large write is sent in packets of 64 KiB, and a connection outlives the attempt to make it", async (t) => {
  let received = 0;
  const behind = createServer((socket) => void socket.on("data", (bytes) => (received += bytes.length)));
  const port = await listening(t, behind);
  const { server, dial } = await aServer(t, () => false);
  const attempt = new AbortController();
  const made = await dial(`127.0.0.1:${port}`, attempt);
  attempt.abort(new Error("too late"));
  await new Promise((sent) => made.write(Buffer.alloc(150 * 1024), sent));
  await new Promise((sent) => made.write(Buffer.alloc(0), sent)); // is done, though nothing is sent
  await waitFor(() => received === 150 * 1024, { what: "the bytes" });
  assert.deepEqual(server.packets, ["DIAL_REQ", "DATA", "DATA", "DATA"]);
  assert.equal(made.destroyed, false);
  made.destroy();
});

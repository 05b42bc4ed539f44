/** What becomes of a message: an answer, an answer about an error, or nothing, and how it is counted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { decode, encode } from "dns-packet";
import type { Clients } from "./clients.ts";
import { newDnsMetrics } from "./metrics.ts";
import { newRequestHandler } from "./request-handler.ts";
import type { Responder } from "./responder.ts";

const query = encode({ id: 9, type: "query", flags: 0x100, questions: [{ name: "a.example", type: "A" }] });

function handling(respond: Responder, admits: ReturnType<Clients["admit"]> = "yes") {
  const registry = newMetricsRegistry();
  const errors: unknown[] = [];
  const handle = newRequestHandler({
    clients: { admit: () => admits, allow() {} },
    respond,
    metrics: newDnsMetrics(registry),
    clock: newFakeClock(),
    log: { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) },
  });
  return { handle, errors, shown: () => registry.render() };
}

const failure = new Error("a bug");
for (const { name, respond } of [
  {
    name: "at once",
    respond: () => {
      throw failure;
    },
  },
  { name: "later", respond: () => Promise.reject(failure) },
] satisfies { name: string; respond: Responder }[])
  test(`an exception ${name} is answered with SERVFAIL, logged and counted`, async () => {
    const { handle, errors, shown } = handling(respond);
    const answer = await handle(query, "127.0.0.1", "udp");
    assert.partialDeepStrictEqual(decode(answer as Buffer), { id: 9, rcode: "SERVFAIL" });
    assert.deepEqual(errors, [failure]);
    assert.match(await shown(), /^coredns_panics_total 1$/m);
    assert.match(await shown(), /^coredns_dns_responses_total\{rcode="SERVFAIL"\} 1$/m);
  });

for (const { name, message = query, admits = "yes", reason } of [
  { name: "a stranger", admits: "stranger", reason: "client" },
  { name: "a client that asks too often", admits: "tooOften", reason: "rate" },
  { name: "a message that is longer than any query", message: Buffer.alloc(4_097), reason: "size" },
  { name: "a response", message: encode({ id: 9, type: "response" }), reason: "malformed" },
  { name: "less than a header", message: Buffer.alloc(11), reason: "malformed" },
] satisfies { name: string; message?: Buffer; admits?: ReturnType<Clients["admit"]>; reason: string }[])
  test(`${name} gets no answer, and is counted as ${reason}`, async () => {
    const { handle, shown } = handling(() => assert.fail("answered"), admits);
    assert.equal(await handle(message, "192.0.2.1", "udp"), undefined);
    assert.match(await shown(), new RegExp(`^coxswain_dns_dropped_total\\{reason="${reason}"\\} 1$`, "m"));
  });

test("a query that cannot be understood is answered with what is wrong", async () => {
  const { handle } = handling(() => assert.fail("answered"));
  const update = Buffer.from(query);
  update.writeUInt16BE(5 << 11, 2);
  assert.partialDeepStrictEqual(decode((await handle(update, "127.0.0.1", "tcp")) as Buffer), { id: 9, rcode: "NOTIMP" });
});

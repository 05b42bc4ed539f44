import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AuditRecord } from "./event.ts";
import { newWebhookBackend } from "./webhook-backend.ts";

const version = "audit.k8s.io/v1";
const aRecord = (id: string): AuditRecord => ({ item: () => Buffer.from(JSON.stringify({ auditID: id })) }) as never;

interface Call {
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly body: { readonly items: readonly { readonly auditID: string }[] };
}

/** A backend for a server on loopback that answers with these codes, then with 200. */
async function started(t: TestContext, codes: number[], more: Partial<ClientConfig> = {}) {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      calls.push({
        url: request.url,
        authorization: request.headers.authorization,
        body: JSON.parse(Buffer.concat(parts).toString()),
      });
      response.writeHead(codes.shift() ?? 200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const clock = newFakeClock();
  const failures: unknown[] = [];
  const client = { host: `http://127.0.0.1:${(server.address() as AddressInfo).port}/audit`, ...more } as ClientConfig;
  const backend = newWebhookBackend({ client, initialBackoffMs: 10_000, version }, clock, (_, err) => failures.push(err));
  t.after(async () => {
    await backend.stop(AbortSignal.abort());
    server.closeAllConnections();
    server.close();
  });
  const connections = (): Promise<number> => promisify(server.getConnections.bind(server))();
  return { backend, calls, clock, failures, connections, host: client.host };
}

test("all of several events are in the list", async (t) => {
  const { backend, calls } = await started(t, []);
  assert.equal(await backend.process(["a", "b", "c"].map(aRecord)), true);
  assert.deepEqual(calls[0]?.body.items, [{ auditID: "a" }, { auditID: "b" }, { auditID: "c" }]);
});

test("after a 401 the token is read again", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-audit-webhook-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "old");
  const { backend, calls, clock } = await started(t, [401], { tokenFile });
  const processed = backend.process([aRecord("a")]);
  const untilDueMs = (): number => (clock.nextDue ?? 0) - clock.now();
  await waitFor(() => untilDueMs() >= 10_000 && untilDueMs() <= 12_000); // waits for the second attempt
  writeFileSync(tokenFile, "new");
  await clock.advance(12_000);
  assert.equal(await processed, true);
  assert.deepEqual(
    calls.map(({ authorization }) => authorization),
    ["Bearer old", "Bearer new"],
  );
});

test("an event is sent five times, with growing delays, before it is reported as lost", async (t) => {
  const { backend, calls, clock, failures } = await started(t, [500, 503, 500, 500, 500]);
  const processed = backend.process([aRecord("a")]);
  for (let attempt = 1, leastMs = 10_000; attempt < 5; attempt++, leastMs *= 1.5) {
    const untilDueMs = (): number => (clock.nextDue ?? 0) - clock.now();
    await waitFor(() => calls.length === attempt && untilDueMs() >= leastMs);
    assert.ok(untilDueMs() <= leastMs * 1.2, `attempt ${attempt + 1} comes after ${untilDueMs()} ms`);
    await clock.advance(untilDueMs());
  }
  assert.equal(await processed, false);
  assert.deepEqual([calls.length, failures.length], [5, 1]);
  assert.match(String(failures[0]), /the webhook answered 500/);
  assert.equal(await backend.process([aRecord("b")]), true, "the next event is sent anew");
});

test("a backend that stops between two attempts reports the event as lost at once", async (t) => {
  const { backend, calls, clock, failures } = await started(t, [500]);
  const processed = backend.process([aRecord("a")]);
  await waitFor(() => clock.nextDue !== undefined);
  await backend.stop(AbortSignal.abort());
  assert.equal(await processed, false);
  assert.deepEqual([calls.length, failures.length], [1, 1]);
});

test("the time limit is added to the query of the server's URL", async (t) => {
  const { backend, calls, host } = await started(t, []);
  await backend.process([aRecord("a")]);
  assert.equal(calls[0]?.url, "/audit?timeout=30s");
  const other = await started(t, [], { host: `${host}?cluster=a` });
  await other.backend.process([aRecord("a")]);
  assert.equal(calls[1]?.url, "/audit?cluster=a&timeout=30s");
});

test("answers from 200 to 206 are taken, others are not", async (t) => {
  const { backend, calls, clock } = await started(t, [200, 206, 207]);
  for (const _ of [200, 206]) assert.equal(await backend.process([aRecord("a")]), true);
  const processed = backend.process([aRecord("b")]);
  await waitFor(() => clock.nextDue !== undefined, { what: "the second attempt" });
  assert.equal(calls.length, 3);
  await backend.stop(AbortSignal.abort());
  assert.equal(await processed, false);
});

test("a backend that has stopped leaves no connection", async (t) => {
  const { backend, connections } = await started(t, []);
  await backend.process([aRecord("a")]);
  assert.equal(await connections(), 1);
  await backend.stop(AbortSignal.abort());
  await waitFor(async () => (await connections()) === 0, { what: "the end of the connection" });
});

import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { timeout } from "@coxswain/apimachinery/objects/errors/status-error";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { RequestContext } from "../request/context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import type { ApiService } from "./api-services.ts";
import { newBackends } from "./backends.ts";
import { newProxy } from "./proxy.ts";

const ca = await newCa({ commonName: "ca" });

/** @returns a function that sends a request to a server that accepts requests and never responds */
async function silent(t: TestContext, clock: FakeClock) {
  const pair = await newCertificate({ commonName: "a", dnsNames: ["b.a.svc"], usages: ["server"], ca });
  let requested = 0;
  const server = createServer({ cert: pair.certPem, key: pair.keyPem }, () => void requested++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const apiService: ApiService = {
    metadata: { name: "v1.example.com" },
    spec: {
      group: "example.com",
      version: "v1",
      groupPriorityMinimum: 1,
      versionPriority: 1,
      caBundle: Buffer.from(ca.certPem).toString("base64"),
      service: { namespace: "a", name: "b", port },
    },
    status: { conditions: [{ type: "Available", status: "True" }] },
  };
  const backend = newBackends({ current: undefined }).of(apiService);
  assert.ok(backend);
  const proxy = newProxy({ resolve: () => ({ host: "127.0.0.1", port }), refused() {}, clock, log: discardLogger });
  return {
    requested: () => requested,
    async ask(path: string, signal: AbortSignal) {
      const answer = { status: 0, text: "" };
      const exchange = {
        method: "GET",
        url: path,
        headers: {},
        httpVersion: "1.1",
        remoteAddress: "10.0.0.1",
        get headersSent() {
          return answer.status !== 0;
        },
        respond(status: number, _headers: object, text: string) {
          Object.assign(answer, { status, text });
        },
      } as unknown as Exchange;
      const user = { name: "jane", groups: [] };
      const info = parseRequestInfo("GET", path);
      const ctx = { exchange, info, query: new URLSearchParams(), user, auditId: "a", signal } as unknown as RequestContext;
      await proxy(ctx, apiService, backend);
      return answer;
    },
  };
}

test("a server that does not answer discovery delays others by at most 5 s", async (t) => {
  const clock = newFakeClock();
  const server = await silent(t, clock);
  const answer = server.ask("/apis/example.com/v1", new AbortController().signal);
  await waitFor(() => server.requested() === 1, { what: "the server to be queried" });
  await clock.advance(5_000);
  assert.deepEqual(await answer, { status: 503, text: "error trying to reach service: context deadline exceeded\n" });
});

test("another request waits for its own deadline, and gets its own answer", async (t) => {
  const clock = newFakeClock();
  const server = await silent(t, clock);
  const deadline = new AbortController();
  const answer = server.ask("/apis/example.com/v1/things", deadline.signal);
  await waitFor(() => server.requested() === 1, { what: "the server to be queried" });
  await clock.advance(60_000);
  const err = timeout("request did not complete within the allotted timeout", 0);
  deadline.abort(err);
  await assert.rejects(answer, err);
});

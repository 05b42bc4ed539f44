import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
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

/** @returns a function that sends a request to a server that accepts requests and handles them with `serve`, by default never */
async function silent(
  t: TestContext,
  clock: FakeClock,
  serve: (response: ServerResponse, request: IncomingMessage) => void = () => {},
  {
    available = "True",
    caBundle = ca.certPem,
    fails,
  }: { available?: "True" | "False" | "Unknown"; caBundle?: string; fails?: Error } = {},
) {
  const pair = await newCertificate({ commonName: "a", dnsNames: ["b.a.svc"], usages: ["server"], ca });
  let requested = 0;
  const server = createServer({ cert: pair.certPem, key: pair.keyPem }, (request, response) => {
    requested++;
    serve(response, request);
  });
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
      caBundle: Buffer.from(caBundle).toString("base64"),
      service: { namespace: "a", name: "b", port },
    },
    status: { conditions: [{ type: "Available", status: available }] },
  };
  const backend = newBackends({ current: undefined }).of(apiService);
  assert.ok(backend);
  const refused: number[] = [];
  const proxy = newProxy({
    resolve() {
      if (fails !== undefined) throw fails;
      return { host: "127.0.0.1", port };
    },
    refused: (_ctx, code) => void refused.push(code),
    ...{ clock, log: discardLogger },
  });
  let released = 0;
  return {
    refused,
    requested: () => requested,
    released: () => released,
    async ask(path: string, signal: AbortSignal, more: Partial<Exchange> = {}) {
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
        ...more,
      } as unknown as Exchange;
      const user = { name: "jane", groups: [] };
      const info = parseRequestInfo("GET", path);
      const watchStarted = (): void => void released++;
      const query = new URLSearchParams();
      const ctx = { exchange, info, query, user, auditId: "a", signal, watchStarted } as unknown as RequestContext;
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
  assert.equal(clock.nextDue, clock.now() + 5_000);
  await clock.advance(5_000);
  assert.deepEqual(await answer, { status: 503, text: "error trying to reach service: context deadline exceeded\n" });
});

test("another request waits for its own deadline, and gets its own answer", async (t) => {
  const clock = newFakeClock();
  const server = await silent(t, clock);
  const deadline = new AbortController();
  const answer = server.ask("/apis/example.com/v1/things", deadline.signal);
  await waitFor(() => server.requested() === 1, { what: "the server to be queried" });
  assert.equal(server.released(), 1, "it holds no seat of its priority level meanwhile");
  await clock.advance(60_000);
  const err = timeout("request did not complete within the allotted timeout", 0);
  deadline.abort(err);
  await assert.rejects(answer, err);
});

for (const { what, options, want } of [
  { what: "not available", options: { available: "False" }, want: [503, "service unavailable\n"] },
  { what: "not known to be available", options: { available: "Unknown" }, want: [503, "service unavailable\n"] },
  { what: "behind no service", options: { fails: new Error("no such service") }, want: [503, "service unavailable\n"] },
  {
    what: "of an authority that is none",
    options: { caBundle: "none" },
    want: [500, "unable to load root certificates: unable to parse bytes as PEM block\n"],
  },
] as const) {
  test(`a server that is ${what} is not asked, and the refusal is this server's`, async (t) => {
    const server = await silent(t, newFakeClock(), () => {}, options);
    const { status, text } = await server.ask("/apis/example.com/v1/things", new AbortController().signal);
    assert.deepEqual([status, text], want);
    assert.deepEqual([server.refused, server.requested(), server.released()], [[want[0]], 0, 0]);
  });
}

test("a failure of a server that was asked is no refusal of this server's", async (t) => {
  const server = await silent(t, newFakeClock(), (response) => void response.socket?.destroy());
  const { status, text } = await server.ask("/apis/example.com/v1/things", new AbortController().signal);
  assert.equal(status, 503);
  assert.match(text, /^error trying to reach service: /);
  assert.deepEqual(server.refused, []);
});

test("a redirect is not passed on, and its connection is closed, whatever the server still has to say", async (t) => {
  const closed = Promise.withResolvers<void>();
  const server = await silent(t, newFakeClock(), (response) => {
    response.once("close", () => closed.resolve());
    response.writeHead(302, { location: "https://elsewhere.example" }).write("more is to come");
  });
  const answer = await server.ask("/apis/example.com/v1/things", new AbortController().signal);
  assert.deepEqual(answer, {
    status: 502,
    text: "the backend attempted to redirect this request, which is not permitted",
  });
  await closed.promise;
});

for (const { status, location, want } of [
  { status: 304, want: 304 },
  { status: 300, want: 300 },
  { status: 399, location: "/x", want: 502 },
  { status: 300, location: "/x", want: 502 },
  { status: 201, location: "/x", want: 201 },
]) {
  test(`an answer with ${status} ${location === undefined ? "without" : "with"} a location is ${want === 502 ? "refused" : "passed on"}`, async (t) => {
    const clock = newFakeClock();
    const server = await silent(t, clock, (response) => {
      response.writeHead(status, location === undefined ? {} : { location }).end();
    });
    let streamed = 0;
    const stream = (code: number) => {
      streamed = code;
      return { write: () => true, drained: async () => {}, end() {} };
    };
    const more = { stream } as unknown as Partial<Exchange>;
    const answer = await server.ask("/apis/example.com/v1", new AbortController().signal, more);
    assert.equal(streamed || answer.status, want);
    assert.equal(clock.waiting, 0, "the time limit of discovery has ended");
  });
}

test("an answer that the server has compressed for the client is passed on as it is", async (t) => {
  const packed = gzipSync('{"kind":"ThingList"}');
  const server = await silent(t, newFakeClock(), (response, request) => {
    const coding = request.headers["accept-encoding"];
    response
      .writeHead(200, { "content-type": "application/json", "content-encoding": coding, vary: "Accept-Encoding" })
      .end(packed);
  });
  const chunks: Buffer[] = [];
  let head: object = {};
  const stream = (status: number, headers: object) => {
    head = { status, ...headers };
    return { write: (chunk: Buffer) => chunks.push(chunk) > 0, drained: async () => {}, end() {} };
  };
  const more = { headers: { "accept-encoding": "gzip" }, stream } as unknown as Partial<Exchange>;
  await server.ask("/apis/example.com/v1/things", new AbortController().signal, more);
  const want = { status: 200, "content-type": "application/json", "content-encoding": "gzip", vary: "Accept-Encoding" };
  assert.partialDeepStrictEqual(head, want);
  assert.deepEqual(Buffer.concat(chunks), packed);
});

test("an upgrade whose path is another one when it is resolved is not sent", async (t) => {
  const server = await silent(t, newFakeClock());
  const upgrade = { socket: {}, head: Buffer.alloc(0) } as never;
  const answer = await server.ask("/apis/example.com/v1/../v2/secrets", new AbortController().signal, { upgrade });
  assert.deepEqual(answer, { status: 503, text: "invalid path\n" });
  assert.equal(server.requested(), 0);
});

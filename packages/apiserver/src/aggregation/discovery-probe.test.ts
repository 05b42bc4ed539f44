import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ApiService } from "./api-services.ts";
import { newBackends } from "./backends.ts";
import { newProbe } from "./discovery-probe.ts";

/** Probes a server behind an APIService that handles the n-th request with `serve`. */
async function probing(t: TestContext, serve: (n: number, response: ServerResponse) => void) {
  const ca = await newCa({ commonName: "ca" });
  const pair = await newCertificate({ commonName: "b", dnsNames: ["b.a.svc"], usages: ["server"], ca });
  const requested: { url: string | undefined; user: unknown }[] = [];
  let open = 0;
  const server = createServer({ cert: pair.certPem, key: pair.keyPem }, (request, response) => {
    requested.push({ url: request.url, user: request.headers["x-remote-user"] });
    open++;
    response.on("close", () => open--);
    serve(requested.length, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const spec = {
    group: "example.com",
    version: "v1",
    groupPriorityMinimum: 1,
    versionPriority: 1,
    insecureSkipTLSVerify: true,
    service: { namespace: "a", name: "b", port },
  };
  const apiService = { metadata: { name: "v1.example.com" }, spec } as ApiService;
  const clock = newFakeClock();
  const probe = newProbe({
    resolve: () => ({ host: "127.0.0.1", port }),
    backendOf: newBackends({ current: undefined }).of,
    clock,
  });
  const stop = new AbortController();
  const url = `https://127.0.0.1:${port}/apis/example.com/v1`;
  return { requested, open: () => open, clock, stop, url, runProbe: () => probe(apiService, stop.signal) };
}

test("one answer of several will do, and the others are not waited for", async (t) => {
  const { requested, open, runProbe, clock } = await probing(t, (n, response) => {
    if (n === 4) response.writeHead(200).end();
    if (n < 3) response.writeHead(503).end();
  });
  assert.equal(await runProbe(), undefined);
  await waitFor(() => open() === 0, { what: "the other requests to end" });
  assert.equal(clock.waiting, 0);
  assert.deepEqual(requested[0], { url: "/apis/example.com/v1", user: "system:kube-aggregator" });
});

for (const { status, answers } of [
  { status: 200, answers: true },
  { status: 299, answers: true },
  { status: 300, answers: false },
  { status: 404, answers: false },
]) {
  test(`a server that says ${status} is ${answers ? "there" : "not there"}, as five say`, async (t) => {
    const { requested, url, runProbe } = await probing(t, (_, response) => response.writeHead(status).end());
    const want = `failing or missing response from ${url}: bad status from ${url}: ${status}`;
    assert.equal(await runProbe(), answers ? undefined : want);
    if (!answers) assert.equal(requested.length, 5);
  });
}

test("a server that does not answer for five seconds is unavailable", async (t) => {
  const { requested, open, clock, url, runProbe } = await probing(t, () => undefined);
  let said: string | undefined;
  const answer = runProbe().then((text) => {
    said = text;
  });
  await waitFor(() => requested.length === 5, { what: "all requests" });
  await clock.advance(4_999);
  assert.equal(said, undefined);
  await clock.advance(1);
  await answer;
  const why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
  assert.equal(said, `failing or missing response from ${url}: Get "${url}": ${why}`);
  await waitFor(() => open() === 0, { what: "the requests to end" });
});

test("a caller that aborted gets its own reason, not a timeout", async (t) => {
  const { requested, clock, stop, runProbe } = await probing(t, () => undefined);
  const answer = runProbe();
  const ended = assert.rejects(answer, /enough/);
  await waitFor(() => requested.length > 0, { what: "a request" });
  stop.abort(new Error("enough"));
  await ended;
  assert.equal(clock.waiting, 0);
});

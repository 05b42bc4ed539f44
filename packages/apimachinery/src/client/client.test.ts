import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { isConflict, isGone, isNotFound } from "../objects/errors/predicates.ts";
import type { StatusError } from "../objects/errors/status-error.ts";
import type { ResourceRef } from "../objects/meta/group-version.ts";
import type { KubeObject, Unstructured } from "../objects/meta/types.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newCa, newCertificate } from "../serving/certificates.ts";
import { hasFields } from "../testing/has-fields.ts";
import { testPair } from "../testing/tls.ts";
import { settle, waitFor } from "../testing/wait-for.ts";
import { type Client, newClient } from "./client.ts";
import type { ClientConfig } from "./config.ts";
import { isConnectionRefused } from "./transport-errors.ts";

const pods: ResourceRef = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true };
const namespaces: ResourceRef = { group: "", version: "v1", resource: "namespaces", kind: "Namespace", namespaced: false };
const deployments: ResourceRef = { group: "apps", version: "v1", resource: "deployments", kind: "Deployment", namespaced: true };

const server = await testPair();
const user = await testPair("alice");

interface Seen {
  method: string;
  url: string;
  headers: http.IncomingHttpHeaders;
  body: string;
  peer: string;
  session: unknown;
}

type Answer = { status?: number; headers?: Record<string, string>; body?: unknown };

interface TestServer {
  readonly url: string;
  readonly seen: Seen[];
  readonly sessions: http2.ServerHttp2Session[];
  /** Responses in order; the last one repeats. */
  answers: (Answer | ((stream: http2.ServerHttp2Stream) => void))[];
}

/** Starts an HTTP/2 server over TLS in place of an API server. */
async function startServer(t: TestContext, ...answers: TestServer["answers"]): Promise<TestServer> {
  const listener = http2.createSecureServer({ ...server, ca: user.ca, requestCert: true, rejectUnauthorized: false });
  const running: TestServer = { url: "", seen: [], sessions: [], answers };
  listener.on("session", (session) => {
    running.sessions.push(session);
    session.on("error", () => {});
  });
  listener.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    let body = "";
    stream.on("error", () => {});
    stream.on("data", (chunk) => {
      body += chunk;
    });
    stream.on("end", () => {
      const socket = stream.session?.socket as TLSSocket | undefined;
      const peer = socket?.getPeerCertificate()?.subject?.CN;
      const { ":method": method = "", ":path": url = "" } = headers;
      running.seen.push({ method, url, headers, body, peer: String(peer ?? ""), session: stream.session });
      const answer = running.answers.length > 1 ? running.answers.shift() : running.answers[0];
      if (typeof answer === "function") return answer(stream);
      stream.respond({ ":status": answer?.status ?? 200, "content-type": "application/json", ...answer?.headers });
      stream.end(JSON.stringify(answer?.body ?? {}));
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const session of running.sessions) session.destroy();
    listener.close();
  });
  return Object.assign(running, { url: `https://127.0.0.1:${(listener.address() as AddressInfo).port}` });
}

function clientOf(
  t: TestContext,
  { url }: { url: string },
  config: Partial<ClientConfig> = {},
  clock?: ReturnType<typeof newFakeClock>,
): Client {
  const client = newClient({ host: url, ca: server.ca, qps: -1, ...config }, clock === undefined ? {} : { clock });
  t.after(() => client.close());
  return client;
}

const aPodNamed = (name: string): KubeObject & Record<string, unknown> => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "web" },
});
const status = (code: number, reason: string): Answer => ({
  status: code,
  body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason, code, message: `${reason}!` },
});

for (const { name, call, want } of [
  {
    name: "get of a namespaced object",
    call: (c: Client) => c.get(pods, { namespace: "web", name: "a" }),
    want: ["GET", "/api/v1/namespaces/web/pods/a", ""],
  },
  {
    name: "get of a cluster-scoped object ignores a namespace",
    call: (c: Client) => c.get(namespaces, { namespace: "web", name: "web" }),
    want: ["GET", "/api/v1/namespaces/web", ""],
  },
  {
    name: "list of everything with its query",
    call: (c: Client) => c.list(deployments, {}, { labelSelector: "app in (a,b)", limit: 5, resourceVersion: "0" }),
    want: ["GET", "/apis/apps/v1/deployments?labelSelector=app%20in%20(a%2Cb)&limit=5&resourceVersion=0", ""],
  },
  {
    name: "create in the object's namespace",
    call: (c: Client) => c.create(pods, aPodNamed("a"), { fieldManager: "me", dryRun: true }),
    want: ["POST", "/api/v1/namespaces/web/pods?dryRun=All&fieldManager=me", JSON.stringify(aPodNamed("a"))],
  },
  {
    name: "create gives an object its kind",
    call: (c: Client) => c.create<Partial<Unstructured>>(namespaces, { metadata: { name: "x" } }),
    want: ["POST", "/api/v1/namespaces", '{"metadata":{"name":"x"},"apiVersion":"v1","kind":"Namespace"}'],
  },
  {
    name: "create on a subresource",
    call: (c: Client) => c.create(pods, { kind: "Binding" }, { namespace: "web", name: "a", subresource: "binding" }),
    want: ["POST", "/api/v1/namespaces/web/pods/a/binding", '{"kind":"Binding"}'],
  },
  {
    name: "update of a status",
    call: (c: Client) => c.update(pods, aPodNamed("a"), { subresource: "status" }),
    want: ["PUT", "/api/v1/namespaces/web/pods/a/status", JSON.stringify(aPodNamed("a"))],
  },
  {
    name: "apply with force",
    call: (c: Client) =>
      c.patch(pods, { namespace: "web", name: "a" }, { type: "apply", body: { a: 1 } }, { fieldManager: "me", force: true }),
    want: ["PATCH", "/api/v1/namespaces/web/pods/a?fieldManager=me&force=true", '{"a":1}'],
  },
  {
    name: "delete with preconditions",
    call: (c: Client) =>
      c.delete(pods, { namespace: "web", name: "a" }, { propagationPolicy: "Foreground", preconditions: { uid: "u" } }),
    want: [
      "DELETE",
      "/api/v1/namespaces/web/pods/a",
      '{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground","preconditions":{"uid":"u"}}',
    ],
  },
  {
    name: "delete of a collection",
    call: (c: Client) => c.deleteCollection(pods, { namespace: "web" }, { labelSelector: "a=b" }),
    want: ["DELETE", "/api/v1/namespaces/web/pods?labelSelector=a%3Db", '{"kind":"DeleteOptions","apiVersion":"v1"}'],
  },
]) {
  test(`sends ${name}`, async (t) => {
    const running = await startServer(t, { body: { metadata: {}, items: [] } });
    await call(clientOf(t, running));
    const [{ method, url, body } = { method: "", url: "", body: "" }] = running.seen;
    assert.deepEqual([method, url, body], want);
  });
}

test("sends its certificate, its token and its user agent", async (t) => {
  const running = await startServer(t, {});
  const client = clientOf(t, running, {
    cert: user.cert,
    key: user.key,
    token: "secret",
    userAgent: "me/1",
    impersonate: { user: "bob", groups: ["a", "b"] },
  });
  await client.get(pods, { namespace: "web", name: "a" });
  assert.equal(running.seen[0]?.peer, "alice");
  assert.partialDeepStrictEqual(running.seen[0]?.headers, {
    authorization: "Bearer secret",
    "user-agent": "me/1",
    "impersonate-user": "bob",
    "impersonate-group": "a, b",
    accept: "application/json",
  });
});

test("requests only metadata for metadata-only calls", async (t) => {
  const running = await startServer(t, { body: { metadata: {}, items: [] } });
  await clientOf(t, running).list(pods, {}, { metadataOnly: true });
  assert.equal(
    running.seen[0]?.headers.accept,
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
  );
});

test("omits managed fields on request: of an object and of the items of a list, not of nested objects", async (t) => {
  const metadata = { name: "a", managedFields: [{ manager: "m" }] };
  const object = { kind: "Pod", metadata };
  const running = await startServer(t, { body: object }, { body: { items: [object, { metadata: null }] } }, { body: object });
  const [omitting, plain] = [clientOf(t, running, { omitsManagedFields: true }), clientOf(t, running)];
  assert.deepEqual((await omitting.get(pods, { namespace: "web", name: "a" })).metadata, { name: "a" });
  assert.deepEqual((await omitting.list(pods)).items, [{ kind: "Pod", metadata: { name: "a" } }, { metadata: null }]);
  assert.deepEqual((await plain.get(pods, { namespace: "web", name: "a" })).metadata, metadata);
});

test("an empty list has no items, also when the server sends null", async (t) => {
  const started = await startServer(t, { body: { metadata: { resourceVersion: "5" }, items: null } });
  const { items, metadata } = await clientOf(t, started).list(pods, { namespace: "default" }, { metadataOnly: true });
  assert.deepEqual([items, metadata.resourceVersion], [[], "5"]);
});

test("refuses a server that the CA did not sign, unless verification is off", async (t) => {
  const running = await startServer(t, { body: { ok: 1 } });
  await assert.rejects(
    clientOf(t, running, { ca: user.ca }).get(pods, { name: "a" }),
    /unable to verify the first certificate|unable to get local issuer|signature failure/,
  );
  assert.deepEqual(await clientOf(t, running, { ca: user.ca, insecure: true }).get(pods, { name: "a" }), { ok: 1 });
});

test("checks the server's name, or the configured one", async (t) => {
  const running = await startServer(t, {});
  await assert.rejects(
    clientOf(t, running, { serverName: "elsewhere" }).get(pods, { name: "a" }),
    /x509: certificate is valid for .*, not elsewhere/,
  );
  await clientOf(t, running, { serverName: "kubernetes" }).get(pods, { name: "a" });
});

test("does not take the common name of a certificate for the server's name", async (t) => {
  const ca = await newCa({ commonName: "ca" });
  const { certPem: cert, keyPem: key } = await newCertificate({ commonName: "kubernetes", usages: ["server"], ca });
  const listener = http2.createSecureServer({ cert, key }, (_, response) => response.end("{}"));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.after(() => void listener.close());
  const url = `https://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  await assert.rejects(
    clientOf(t, { url }, { ca: ca.certPem, serverName: "kubernetes" }).raw("GET", "/"),
    /x509: certificate relies on legacy Common Name field, use SANs instead/,
  );
});

test("uses one connection for everything", async (t) => {
  const running = await startServer(t, {});
  const client = clientOf(t, running);
  await Promise.all(Array.from({ length: 20 }, (_, i) => client.get(pods, { name: `p${i}` })));
  assert.equal(running.sessions.length, 1);
});

test("reconnects after the connection was lost, and repeats an interrupted read", async (t) => {
  const running = await startServer(t, {}, (stream) => stream.session?.destroy(), { body: { ok: 1 } });
  const client = clientOf(t, running);
  await client.get(pods, { name: "a" });
  assert.deepEqual(await client.get(pods, { name: "b" }), { ok: 1 });
  assert.equal(running.sessions.length, 2);
});

test("over HTTP/1.1 a read is sent again when the server gave up the kept connection, a write is not", async (t) => {
  let gaveUp = 0;
  const listener = http.createServer((incoming, response) => {
    const served = (incoming.socket as net.Socket & { served?: number }).served ?? 0;
    Object.assign(incoming.socket, { served: served + 1 });
    incoming.resume();
    // Simulates an idle timeout: the request is lost with the connection.
    if (served > 0) {
      gaveUp++;
      return incoming.socket.resetAndDestroy();
    }
    response.setHeader("content-type", "application/json");
    response.end('{"ok":1}');
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const client = newClient({ host: `http://127.0.0.1:${(listener.address() as AddressInfo).port}` });
  t.after(() => {
    client.close();
    listener.close();
  });
  for (const name of ["a", "b", "c"]) assert.deepEqual(await client.get(pods, { name }), { ok: 1 });
  assert.equal(gaveUp, 2);
  await assert.rejects(client.create(pods, aPodNamed("a")), { code: "ECONNRESET" });
  assert.equal(gaveUp, 3);
});

test("does not repeat a write that may have been executed", async (t) => {
  const running = await startServer(t, (stream) => stream.session?.destroy(), {});
  await assert.rejects(clientOf(t, running).create(pods, aPodNamed("a")));
  assert.equal(running.seen.length, 1);
});

test("repeats a write that the server refused without processing", async (t) => {
  const refuse = (stream: http2.ServerHttp2Stream): void => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
  const running = await startServer(t, refuse, { body: { ok: 1 } });
  assert.deepEqual(await clientOf(t, running).create(pods, aPodNamed("a")), { ok: 1 });
});

test("uses a new connection after GOAWAY while the old one finishes", async (t) => {
  const running = await startServer(t, {});
  const client = clientOf(t, running);
  await client.get(pods, { name: "a" });
  running.sessions[0]?.goaway(0);
  await waitFor(async () => {
    await client.get(pods, { name: "b" });
    return running.sessions.length === 2;
  });
});

test("closes a connection that does not answer pings", async (t) => {
  const running = await startServer(t, (stream) => {
    stream.respond({ ":status": 200 });
    stream.write('{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}\n');
  });
  const between = await startRelay(t, Number(new URL(running.url).port));
  const clock = newFakeClock();
  const client = clientOf(t, { url: `https://127.0.0.1:${between.port}` }, {}, clock);
  const watch = client.watch(pods, {}, { signal: new AbortController().signal })[Symbol.asyncIterator]();
  await watch.next();
  await clock.advance(30_000); // the ping is answered: the watch continues
  await waitFor(() => clock.waiting === 1, { what: "the answer to a ping" });
  between.freeze();
  await clock.advance(30_000);
  const failed = assert.rejects(Promise.resolve(watch.next()), /does not answer pings/);
  await clock.advance(15_000);
  await failed;
});

test("a connection that is closed while a ping is unanswered leaves no timer", async (t) => {
  const running = await startServer(t, (stream) => {
    stream.respond({ ":status": 200 });
    stream.write('{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}\n');
  });
  const between = await startRelay(t, Number(new URL(running.url).port));
  const clock = newFakeClock();
  const client = clientOf(t, { url: `https://127.0.0.1:${between.port}` }, {}, clock);
  const watch = client.watch(pods, {}, { signal: new AbortController().signal })[Symbol.asyncIterator]();
  await watch.next();
  between.freeze();
  await clock.advance(30_000);
  assert.equal(clock.waiting, 2);
  const failed = assert.rejects(Promise.resolve(watch.next()));
  client.close();
  await failed;
  await settle(50);
  assert.equal(clock.waiting, 0);
});

/** Starts a relay that forwards bytes until `freeze` makes it drop them, like a broken network. */
async function startRelay(t: TestContext, to: number): Promise<{ port: number; freeze(): void }> {
  let frozen = false;
  const relay = net.createServer((near) => {
    const far = net.connect(to, "127.0.0.1");
    near.on("data", (chunk) => frozen || far.write(chunk));
    far.on("data", (chunk) => frozen || near.write(chunk));
    for (const socket of [near, far]) socket.on("error", () => {});
    t.after(() => {
      near.destroy();
      far.destroy();
    });
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  t.after(() => relay.close());
  return {
    port: (relay.address() as AddressInfo).port,
    freeze() {
      frozen = true;
    },
  };
}

for (const { name, answer, check } of [
  { name: "404", answer: status(404, "NotFound"), check: isNotFound },
  { name: "409", answer: status(409, "Conflict"), check: isConflict },
]) {
  test(`makes an error of a ${name}`, async (t) => {
    const running = await startServer(t, answer);
    await assert.rejects(clientOf(t, running).get(pods, { name: "a" }), check);
  });
}

test("a response without a Status is an error", async (t) => {
  const running = await startServer(t, (stream) => {
    stream.respond({ ":status": 502, "content-type": "text/html", "retry-after": "soon" });
    stream.end("<html>bad gateway</html>");
  });
  const { status } = await clientOf(t, running)
    .get(pods, { name: "a" })
    .then(
      () => assert.fail(),
      (err: StatusError) => err,
    );
  hasFields(status, {
    code: 502,
    details: { causes: [{ reason: "UnexpectedServerResponse", message: "<html>bad gateway</html>" }] },
  });
  assert.equal(status.details?.retryAfterSeconds, undefined);
});

test("waits for Retry-After, then repeats the request, also a write", async (t) => {
  const later = { ...status(429, "TooManyRequests"), headers: { "retry-after": "7" } };
  const running = await startServer(t, later, { body: { ok: 1 } });
  const clock = newFakeClock();
  const answer = clientOf(t, running, {}, clock).create(pods, aPodNamed("a"));
  await waitFor(() => running.seen.length === 1 && clock.nextDue !== undefined && clock.nextDue - clock.now() === 7000);
  await clock.advance(7000);
  assert.deepEqual(await answer, { ok: 1 });
});

test("an error without Retry-After is returned to the caller", async (t) => {
  const running = await startServer(t, status(503, "ServiceUnavailable"));
  await assert.rejects(clientOf(t, running).get(pods, { name: "a" }), (err: { code?: number }) => err.code === 503);
  assert.equal(running.seen.length, 1);
});

test("sends no more requests than its rate limit allows", async (t) => {
  const running = await startServer(t, {});
  const clock = newFakeClock();
  const client = clientOf(t, running, { qps: 10, burst: 2 }, clock);
  const all = Promise.all([1, 2, 3, 4].map((i) => client.get(pods, { name: `p${i}` })));
  await waitFor(() => running.seen.length === 2);
  await clock.advance(100);
  await waitFor(() => running.seen.length === 3);
  await clock.advance(100);
  await all;
});

test("ends a request when its signal is aborted", async (t) => {
  const running = await startServer(t, () => {});
  const stop = new AbortController();
  const answer = clientOf(t, running).get(pods, { name: "a" }, { signal: stop.signal });
  const rejected = assert.rejects(answer, /enough/);
  await waitFor(() => running.seen.length === 1);
  stop.abort(new Error("enough"));
  await rejected;
});

test("watches: events are delivered as they arrive, wherever chunks are divided", async (t) => {
  const lines = [1, 2, 3].map((n) =>
    JSON.stringify({ type: "ADDED", object: { metadata: { name: `p${n}`, resourceVersion: String(n), labels: { x: "ä" } } } }),
  );
  const running = await startServer(t, (stream) => {
    stream.respond({ ":status": 200 });
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    const middle = bytes.indexOf("ä") + 1; // splits a multi-byte character
    stream.write(bytes.subarray(0, middle));
    setImmediate(() => stream.end(bytes.subarray(middle)));
  });
  const watch = clientOf(t, running).watch(
    pods,
    { namespace: "web" },
    { resourceVersion: "5", allowWatchBookmarks: true, signal: new AbortController().signal },
  );
  const events = await Array.fromAsync(watch);
  assert.deepEqual(
    events.map(({ object }) => `${object.metadata.name}${object.metadata.labels?.["x"]}`),
    ["p1ä", "p2ä", "p3ä"],
  );
  assert.equal(running.seen[0]?.url, "/api/v1/namespaces/web/pods?resourceVersion=5&allowWatchBookmarks=true&watch=true");
});

test("watches: an ERROR event is an error", async (t) => {
  const running = await startServer(t, (stream) => {
    stream.respond({ ":status": 200 });
    stream.end(`${JSON.stringify({ type: "ERROR", object: status(410, "Gone").body })}\n`);
  });
  const watch = clientOf(t, running).watch(pods, {}, { signal: new AbortController().signal });
  await assert.rejects(Array.fromAsync(watch), isGone);
});

test("watches: an end in the middle of an event is an error", async (t) => {
  const running = await startServer(t, (stream) => {
    stream.respond({ ":status": 200 });
    stream.end('{"type":"ADDED","obj');
  });
  const watch = clientOf(t, running).watch(pods, {}, { signal: new AbortController().signal });
  await assert.rejects(Array.fromAsync(watch), /middle of an event/);
});

test("watches: a slow reader applies backpressure to the server, other requests continue", async (t) => {
  let written = 0;
  const line = `${JSON.stringify({ type: "ADDED", object: { metadata: { name: "x".repeat(100_000) } } })}\n`;
  const running = await startServer(
    t,
    (stream) => {
      stream.respond({ ":status": 200 });
      const more = (): void => {
        while (written < 300 && stream.write(line)) written++;
        if (written < 300) stream.once("drain", more);
      };
      more();
    },
    { body: { ok: 1 } },
  );
  const client = clientOf(t, running);
  const stop = new AbortController();
  const watch = client.watch(pods, {}, { signal: stop.signal })[Symbol.asyncIterator]();
  await watch.next();
  assert.deepEqual(await client.get(pods, { name: "a" }), { ok: 1 });
  assert.ok(written < 100, `${written} events of 100 kB were written ahead of the reader`);
  stop.abort(new Error("done"));
  await assert.rejects(async () => {
    for (;;) if ((await watch.next()).done) return;
  }, /done/);
});

test("watches: abort ends them", async (t) => {
  const running = await startServer(t, (stream) => stream.respond({ ":status": 200 }));
  const stop = new AbortController();
  const events = Array.fromAsync(clientOf(t, running).watch(pods, {}, { signal: stop.signal }));
  const rejected = assert.rejects(events, /stopped/);
  await waitFor(() => running.seen.length === 1);
  stop.abort(new Error("stopped"));
  await rejected;
});

test("preserves int64 values and the key __proto__", async (t) => {
  const text = '{"metadata":{"name":"a"},"big":9223372036854775807,"data":{"__proto__":"x"}}';
  const running = await startServer(t, (stream) => {
    stream.respond({ ":status": 200 });
    stream.end(text);
  });
  const client = clientOf(t, running);
  const object = await client.get(pods, { name: "a" });
  assert.equal(object["big"], 9223372036854775807n);
  await client.update(pods, object);
  assert.equal(running.seen[1]?.body, `{${text.slice(1, -1)},"apiVersion":"v1","kind":"Pod"}`);
});

test("uses HTTP/1.1 for http:// servers, below a base path", async (t) => {
  const urls: string[] = [];
  const plain = http.createServer((request, response) => {
    urls.push(`${request.method} ${request.url}`);
    response.end('{"ok":1}');
  });
  await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
  t.after(() => plain.close());
  const client = clientOf(t, { url: `http://127.0.0.1:${(plain.address() as AddressInfo).port}/cluster/` });
  assert.deepEqual(await client.get(pods, { name: "a" }), { ok: 1 });
  assert.deepEqual(urls, ["GET /cluster/api/v1/pods/a"]);
});

test("over HTTP/1.1 a request whose signal is aborted leaves no connection, before its answer or within it", async (t) => {
  const closed: string[] = [];
  const arrived: string[] = [];
  const plain = http.createServer((request, response) => {
    const url = request.url ?? "";
    request.socket.once("close", () => closed.push(url));
    if (url === "/within") response.write("[");
    arrived.push(url);
  });
  await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
  t.after(() => plain.close());
  const client = clientOf(t, { url: `http://127.0.0.1:${(plain.address() as AddressInfo).port}` });
  for (const path of ["/before", "/within"]) {
    const stop = new AbortController();
    const rejected = assert.rejects(client.raw("GET", path, { signal: stop.signal }), /enough/);
    await waitFor(() => arrived.includes(path), { what: path });
    stop.abort(new Error("enough"));
    await rejected;
    await waitFor(() => closed.includes(path), { what: `the end of ${path}` });
  }
});

test("a refused connection has the code ECONNREFUSED", async (t) => {
  const client = clientOf(t, { url: "https://127.0.0.1:1" });
  await assert.rejects(client.get(pods, { name: "a" }), isConnectionRefused);
});

test("a delete succeeds whatever the server answers, as long as the status says so", async (t) => {
  const remote = await startServer(t, (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/json" });
    stream.end("{");
  });
  assert.equal(await clientOf(t, remote).delete(pods, { namespace: "web", name: "a" }), undefined);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { createSecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { asyncListener } from "@coxswain/apimachinery/testing/async-listener";
import { openConnection } from "./http.ts";
import { openWatchConnection } from "./watch-client.ts";

test("requests send their bodies and headers, and responses have status, size and, on request, body", async (t) => {
  const connection = await openConnection(await serve(t, asyncListener(echo)), "secret", undefined);
  t.after(() => connection.close());
  const headers = { "content-type": "text/plain" };
  const posted = await connection.request("/posted", { method: "POST", body: "a body", headers, keepBody: true });
  assert.equal(posted.status, 201);
  assert.equal(posted.body.toString(), "POST /posted text/plain Bearer secret a body");
  const got = await connection.request("/got");
  assert.deepEqual([got.status, got.bytes, got.body.length], [200, "GET /got undefined Bearer secret ".length, 0]);
  assert.equal((await connection.request("/empty", { method: "DELETE" })).status, 204);
  await assert.rejects(connection.request("/no"), /^Error: GET \/no: 404 GET \/no undefined Bearer secret $/);
});

test("many requests with bodies at once wait for the server's windows and its number of streams", async (t) => {
  const url = await serve(t, asyncListener(echo), { maxConcurrentStreams: 10 });
  const connection = await openConnection(url, "secret", undefined);
  t.after(() => connection.close());
  const bodies = Array.from({ length: 60 }, (_, index) => `${index}:`.padEnd(20_000, "x"));
  const answers = await Promise.all(bodies.map((body) => connection.request("/posted", { method: "PUT", body, keepBody: true })));
  assert.deepEqual(
    answers.map(({ body }) => body.toString().split(" ").at(-1)),
    bodies,
  );
});

test("a lost connection ends running requests and refuses new ones", async (t) => {
  const url = await serve(t, (stream) => stream.session?.destroy());
  const connection = await openConnection(url, "secret", undefined);
  await assert.rejects(connection.request("/lost"), /^Error: GET \/lost: the /);
  await assert.rejects(connection.request("/late"), /^Error: GET \/late: the /);
});

test("each watch of a connection gets its own lines, or its refusal", async (t) => {
  const paths: unknown[] = [];
  const url = await serve(t, (stream, headers) => {
    paths.push([headers[":path"], headers.authorization]);
    if (headers[":path"] === "/no") return stream.respond({ ":status": 403 }, { endStream: true });
    stream.respond({ ":status": 200 });
    stream.write("a\n".repeat(Number(headers[":path"]?.slice(1))));
  });
  const connection = await openWatchConnection(url, "x".repeat(300), undefined);
  t.after(() => connection.close());
  const lines = [0, 0];
  const all = Promise.withResolvers<void>();
  const count = (watch: number) => () => {
    lines[watch] = (lines[watch] ?? 0) + 1;
    if (lines[0] === 3 && lines[1] === 20_000) all.resolve();
  };
  await Promise.all([connection.watch("/3", count(0)), connection.watch("/20000", count(1))]);
  await all.promise;
  await assert.rejects(
    connection.watch("/no", () => {}),
    /answered with 403/,
  );
  assert.deepEqual(paths[0], ["/3", `Bearer ${"x".repeat(300)}`]);
});

type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders & { ":path"?: string; ":method"?: string }) => void;

async function echo(stream: ServerHttp2Stream, headers: Parameters<OnStream>[1]): Promise<void> {
  const body = Buffer.concat(await stream.toArray()).toString();
  const status = { "/posted": 201, "/no": 404, "/empty": 204 }[headers[":path"] ?? ""] ?? 200;
  stream.respond({ ":status": status });
  if (status === 204) stream.end();
  else stream.end(`${headers[":method"]} ${headers[":path"]} ${headers["content-type"]} ${headers.authorization} ${body}`);
}

/** An HTTP/2 server for the duration of the test. @returns its URL */
async function serve(t: TestContext, onStream: OnStream, settings: { maxConcurrentStreams?: number } = {}): Promise<string> {
  const ca = await newCa({ commonName: "test-ca" });
  const { certPem, keyPem } = await newCertificate({
    commonName: "test",
    ips: ["127.0.0.1"],
    dnsNames: [],
    usages: ["server"],
    ca,
  });
  const server = createSecureServer({ cert: certPem, key: keyPem, settings });
  server.on("stream", onStream);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

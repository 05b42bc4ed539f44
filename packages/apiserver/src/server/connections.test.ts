/** Connection flags, observed by clients of a complete server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { type TestContext, test } from "node:test";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

function session(t: TestContext, server: TestServer): ClientHttp2Session {
  const made = connect(server.url, { ca: server.ca });
  made.on("error", () => {});
  t.after(() => made.destroy());
  return made;
}

async function get(from: ClientHttp2Session, server: TestServer, path: string): Promise<number> {
  const stream = from.request({ ":path": path, authorization: `Bearer ${server.adminToken}` });
  const [headers] = await once(stream, "response");
  stream.resume();
  await once(stream, "close");
  return headers[":status"];
}

test("--strict-transport-security-directives stand on every answer, also on refusals", async (t) => {
  const server = await startTestServer(t, ["--strict-transport-security-directives=max-age=31536000,includeSubDomains,preload"]);
  for (const [path, headers] of [
    ["/version", {}],
    ["/nowhere", {}],
    ["/version", { authorization: "Bearer wrong" }],
  ] as const) {
    const answer = await server.request("GET", path, undefined, headers);
    assert.equal(answer.headers["strict-transport-security"], "max-age=31536000; includeSubDomains; preload");
  }
});

test("--goaway-chance has clients open new connections now and then, and no request is lost by it", async (t) => {
  const server = await startTestServer(t, ["--goaway-chance=0.02"]);
  let sent = 0;
  // The probability of no GOAWAY in 1,500 requests is 1 in 10^13.
  for (let reported = false; !reported && sent < 1_500; ) {
    const one = session(t, server);
    one.once("goaway", (code) => {
      assert.equal(code, constants.NGHTTP2_NO_ERROR);
      reported = true;
    });
    for (let i = 0; i < 100 && !reported; i++, sent++) assert.equal(await get(one, server, "/readyz/ping"), 200);
    one.close();
  }
  assert.ok(sent < 1_500, "a GOAWAY came");
});

test("without --goaway-chance no connection gets GOAWAY, and no HSTS header is sent", async (t) => {
  const server = await startTestServer(t);
  const one = session(t, server);
  let reported = false;
  one.once("goaway", () => {
    reported = true;
  });
  for (let i = 0; i < 300; i++) assert.equal(await get(one, server, "/readyz/ping"), 200);
  assert.equal(reported, false);
  const { headers } = await server.request("GET", "/version");
  assert.equal(headers["strict-transport-security"], undefined);
});

for (const { flags, want } of [
  { flags: [], want: 250 },
  { flags: ["--http2-max-streams-per-connection=7"], want: 7 },
]) {
  test(`${flags[0] ?? "without a flag"}: a connection may have ${want} streams, one more waits`, async (t) => {
    const server = await startTestServer(t, flags);
    const one = session(t, server);
    const [settings] = await once(one, "remoteSettings");
    assert.equal(settings.maxConcurrentStreams, want);
    const headers = { ":path": "/api/v1/namespaces?watch=1", authorization: `Bearer ${server.adminToken}` };
    const watches = Array.from({ length: want }, () => one.request(headers).on("error", () => {}));
    await Promise.all(watches.map((watch) => once(watch, "response")));
    // Clients that received the limit queue the next stream.
    const next = one.request({ ...headers, ":path": "/readyz/ping" });
    let answered = false;
    next.once("response", () => {
      answered = true;
    });
    next.on("error", () => {});
    await new Promise((resolve) => one.ping(resolve));
    assert.equal(answered, false);
    const other = session(t, server);
    assert.equal(await get(other, server, "/readyz/ping"), 200, "on another connection");
  });
}

/**
 * Requests crafted to be authorized as one thing and served as another, or to bypass checks:
 * authorization and serving must agree.
 */
import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { after, before, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { connectRaw } from "@coxswain/apimachinery/transport/http2/testing/raw-client";
import { dataFrame, headersFrame, requestFields, resetFrame } from "@coxswain/apimachinery/transport/http2/testing/raw-frames";
import { flags } from "@coxswain/apimachinery/transport/http2/wire/frames";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  await server.request("POST", "/api/v1/namespaces/default/secrets", {
    metadata: { name: "treasure" },
    stringData: { gold: "nugget" },
  });
  const rules = [
    { apiGroups: [""], resources: ["pods", "configmaps"], verbs: ["*"] },
    { apiGroups: [""], resources: ["secrets"], resourceNames: ["own"], verbs: ["get", "list", "watch"] },
    { nonResourceURLs: ["/logs/*"], verbs: ["*"] },
  ];
  await server.request("POST", `${rbac}/clusterroles`, { metadata: { name: "some" }, rules });
  await server.request("POST", `${rbac}/clusterrolebindings`, {
    metadata: { name: "some" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "some" },
    subjects: [{ kind: "User", name: "jane", apiGroup: "rbac.authorization.k8s.io" }],
  });
  await waitFor(async () => (await get("/api/v1/namespaces/default/pods")) === 200, { what: "jane's rights" });
});
after(() => server.stop());

const jane = { authorization: "Bearer user-token" };
const secret = "/api/v1/namespaces/default/secrets/treasure";

async function get(path: string, headers: Record<string, string | undefined> = jane): Promise<number> {
  const { code, text } = await server.request("GET", path, undefined, headers);
  assert.ok(!text.includes(Buffer.from("nugget").toString("base64")), `${path} shows the secret`);
  return code;
}

for (const path of [
  "/api/v1/namespaces/default/pods/../secrets/treasure",
  "/api/v1/namespaces/default/pods/%2e%2e/secrets/treasure",
  "/api/v1/namespaces/default/pods/..%2fsecrets%2ftreasure",
  "/api/v1/namespaces/default/pods/.%2e/secrets/treasure",
  "/api/v1/namespaces/default/pods/%252e%252e/secrets/treasure",
  "/api/v1/namespaces/default/pods/..;/secrets/treasure",
  "/api/v1/namespaces/default/pods/x/../../secrets/treasure",
  "/logs/../api/v1/namespaces/default/secrets/treasure",
  "/logs/%2e%2e/api/v1/namespaces/default/secrets/treasure",
  "/api//v1/namespaces/default/secrets/treasure",
  "//api/v1/namespaces/default/secrets/treasure",
  "/api/v1//namespaces/default//secrets/treasure",
  "/api/v1/namespaces/default/secrets/treasure/",
  "/api/v1/namespaces/default/secrets//treasure",
  "/api/v1/namespaces/default/secrets%2ftreasure",
  "/api/v1/namespaces/default%2fsecrets/treasure",
  "/api%2fv1/namespaces/default/secrets/treasure",
  "/API/v1/namespaces/default/secrets/treasure",
  "/api/V1/namespaces/default/secrets/treasure",
  "/api/v1/namespaces/default/Secrets/treasure",
  "/api/v1/namespaces/default/%73ecrets/treasure",
  "/api/v1/./namespaces/default/secrets/treasure",
  "/api/v1/namespaces/default/secrets\\treasure",
  "/api/v1/namespaces/default/pods\\..\\secrets\\treasure",
  "/api/v1/watch/namespaces/default/secrets/treasure",
  "/api/v1/proxy/namespaces/default/secrets/treasure",
  "/api/v1/namespaces/default/secrets/treasure?x=/pods",
  "/api/v1/namespaces/default/secrets/treasure?resource=pods&verb=list",
  "/api/v1/namespaces/default/secrets/treasure#/pods",
  "/api/v1/namespaces/default/secrets/treasure%00",
  "/api/v1/namespaces/default/pods%00/../secrets/treasure",
  "/api/v1/namespaces/default/secrets?fieldSelector=metadata.namespace!=x\\,metadata.name=own",
  "/api/v1/namespaces/default/secrets?fieldSelector=metadata.namespace!=x\\,metadata.name=own&watch=1&timeoutSeconds=1",
  "/api/v1/watch/namespaces/default/secrets/own?fieldSelector=metadata.namespace!=x\\&timeoutSeconds=1",
  "/api/v1/watch/namespaces/default/secrets/own?fieldSelector=metadata.namespace!=x&timeoutSeconds=1",
  "/api/v1/watch/namespaces/default/secrets/own?fieldSelector=metadata.name=treasure&timeoutSeconds=1",
]) {
  test(`${path} does not lead past the authorizer`, async () => {
    const code = await get(path);
    assert.ok(code >= 300, `answered ${code}`);
    assert.ok((await get(path, { authorization: undefined })) >= 300);
  });
}

test("another method's name does not choose another verb", async () => {
  for (const header of ["x-http-method-override", "x-http-method", "x-method-override"]) {
    const { code } = await server.request("POST", secret, {}, { ...jane, [header]: "GET" });
    assert.ok(code >= 400);
  }
  for (const method of ["HEAD", "OPTIONS", "PROPFIND", "get", "TRACE"]) {
    const { code, text } = await server.request(method, secret, undefined, jane);
    assert.ok(code >= 400, `${method} answered ${code}: ${text}`);
  }
});

test("headers that name another path, host or user are ignored", async () => {
  for (const headers of [
    { "x-original-url": "/healthz" },
    { "x-rewrite-url": "/healthz" },
    { "x-forwarded-for": "127.0.0.1" },
    { "x-real-ip": "127.0.0.1", forwarded: "for=127.0.0.1;host=localhost" },
    { "x-forwarded-user": "admin", "x-webauth-user": "admin", "remote-user": "admin" },
    { "x-remote-user": "admin", "x-remote-group": "system:masters" },
    { "proxy-authorization": `Bearer ${"admin"}` },
    { cookie: "user=admin" },
  ]) {
    assert.equal(await get(secret, { ...jane, ...headers }), 403, JSON.stringify(headers));
  }
});

test("a token is accepted only in the header, complete and given once", async () => {
  const token = server.adminToken;
  assert.equal(await get("/api/v1/nodes", { authorization: `bearer ${token}` }), 200);
  for (const [headers, want] of [
    [{ authorization: `Basic ${Buffer.from(`admin:${token}`).toString("base64")}` }, 403],
    [{ authorization: `Token ${token}` }, 403],
    [{ authorization: token }, 403],
    [{ authorization: `Bearer ${token}x` }, 401],
    [{ authorization: `Bearer ${token.slice(0, -1)}` }, 401],
    [{ authorization: `Bearer ${token.toUpperCase()}` }, 401],
    [{ authorization: undefined, "proxy-authorization": `Bearer ${token}` }, 403],
    [{ authorization: undefined, "x-authorization": `Bearer ${token}` }, 403],
  ] as const) {
    assert.equal(await get("/api/v1/nodes", headers), want, JSON.stringify(headers).replace(token, "…"));
  }
  for (const query of ["access_token", "token", "bearer"]) {
    assert.equal(await get(`/api/v1/nodes?${query}=${token}`, { authorization: undefined }), 403);
  }
});

/**
 * Sends raw bytes over one HTTP/1.1 connection. @returns the bytes received until the server closed it, or enough were received
 */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: "127.0.0.1", port: server.port, ca: server.ca, ALPNProtocols: ["http/1.1"] });
    let text = "";
    const timer = setTimeout(() => socket.destroy(), 60_000);
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(text);
    });
    socket.once("error", reject);
    socket.write(bytes);
  });
}

const head = "Host: x\r\nAuthorization: Bearer user-token\r\n";
const hidden = `GET ${secret} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
for (const { name, bytes } of [
  {
    name: "both a length and chunks",
    bytes: `POST /api/v1/namespaces/default/pods HTTP/1.1\r\n${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
  },
  {
    name: "two lengths",
    bytes: `POST /version HTTP/1.1\r\n${head}Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  },
  { name: "a length with a sign", bytes: `POST /version HTTP/1.1\r\n${head}Content-Length: +0\r\n\r\n${hidden}` },
  {
    name: "an unknown coding",
    bytes: `POST /version HTTP/1.1\r\n${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`,
  },
  { name: "a space before the colon", bytes: `GET /version HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer user-token\r\n\r\n` },
  { name: "a folded header", bytes: `GET /version HTTP/1.1\r\n${head}X-A: b\r\n c: d\r\nContent-Length : 5\r\n\r\n` },
  { name: "a bare line feed", bytes: `GET /version HTTP/1.1\nHost: x\nAuthorization: Bearer user-token\n\n` },
  { name: "a NUL in a header", bytes: `GET /version HTTP/1.1\r\n${head}X-A: b\0c\r\n\r\n` },
]) {
  test(`HTTP/1.1 with ${name} is refused, and nothing behind it is served`, async () => {
    const text = await raw(bytes);
    assert.match(text, /^HTTP\/1\.1 400 |^$/);
    assert.equal(text.match(/HTTP\/1\.1 /g)?.length ?? 0, text === "" ? 0 : 1);
  });
}

test("pipelined requests on one connection are authenticated separately", async () => {
  const first = `GET /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\n\r\n`;
  const text = await raw(`${first}${hidden}`);
  const codes = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code);
  assert.deepEqual(codes, ["200", "403"]);
});

test("a request that its client breaks off at once is not served without its body", async (t) => {
  const path = "/api/v1/namespaces/default/configmaps/kept";
  await server.request("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "kept" } });
  const client = await connectRaw({ port: server.port, ca: server.ca });
  t.after(() => void client.socket.destroy());
  const headers = [
    ["authorization", `Bearer ${server.adminToken}`],
    ["content-type", "application/json"],
  ] as const;
  for (let stream = 1; stream < 20; stream += 2) {
    client.send(
      headersFrame(stream, requestFields("DELETE", path, headers), flags.endHeaders),
      dataFrame(stream, JSON.stringify({ dryRun: ["All"] }), flags.endStream),
      resetFrame(stream),
    );
    await client.ping();
  }
  await server.request("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "later" } });
  assert.equal(await get(path), 200, "it was a dry run");
});

test("headers beyond the limit are refused, not cut", async () => {
  const text = await raw(`GET /version HTTP/1.1\r\n${head}X-A: ${"a".repeat(2_000_000)}\r\n\r\n`).catch(() => "");
  assert.match(text, /^HTTP\/1\.1 431 |^$/);
});

for (const { name, headers } of [
  { name: "a second path", headers: { ":path": "/version", "x-path": secret } },
  { name: "a path without a slash", headers: { ":path": secret.slice(1) } },
  { name: "a whole URL as its path", headers: { ":path": `https://127.0.0.1${secret}` } },
  { name: "a line break in its path", headers: { ":path": `/version HTTP/1.1\r\nX: y\r\n\r\nGET ${secret}` } },
  { name: "an asterisk as its path", headers: { ":method": "OPTIONS", ":path": "*" } },
  { name: "a method with a space", headers: { ":method": "GET /version HTTP/1.1", ":path": secret } },
  { name: "a wish for a tunnel", headers: { ":method": "CONNECT", ":authority": `127.0.0.1:${1}` } },
  { name: "another authority and scheme", headers: { ":path": secret, ":authority": "localhost", ":scheme": "http" } },
]) {
  test(`HTTP/2 with ${name} shows nothing`, async () => {
    const session = connectHttp2(server.url, { ca: server.ca });
    session.on("error", () => {});
    const text = await new Promise<string>((resolve) => {
      const chunks: Buffer[] = [];
      const done = (): void => resolve(Buffer.concat(chunks).toString("utf8"));
      try {
        const stream = session.request({ ":method": "GET", ...jane, ...headers });
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.once("error", done);
        stream.once("close", done);
        stream.end();
      } catch {
        done(); // rejected by the client library
      }
    });
    session.destroy();
    assert.ok(!text.includes(Buffer.from("nugget").toString("base64")), text);
    assert.equal(await get("/api/v1/namespaces/default/pods"), 200, "the server lives on");
  });
}

test("tokens stand in no log at any verbosity, and in no answer to whom they are wrong", async (t) => {
  const lines: string[] = [];
  const logged = await startTestServer(t, [], newLogger({ verbosity: 10, write: (line) => void lines.push(line) }));
  const path = "/api/v1/namespaces/default/serviceaccounts";
  await logged.request("POST", path, { metadata: { name: "robot" } });
  const { token } = (await logged.request("POST", `${path}/robot/token`, { spec: {} })).body.status;
  const unknown = "unknown-token-of-somebody";
  const damaged = `${token.slice(0, -8)}AAAAAAAA`;
  const tokens = [token, unknown, damaged, "user-token", logged.adminToken];
  for (const one of tokens) {
    const { text } = await logged.request("GET", "/api/v1/nodes", undefined, { authorization: `Bearer ${one}` });
    assert.ok(!text.includes(one));
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: one } };
    const { body } = await logged.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review);
    assert.ok(!JSON.stringify(body.status).includes(one));
  }
  const all = lines.join("");
  assert.match(all, /Unable to authenticate the request/);
  assert.match(all, /serviceaccounts\/robot\/token/, "requests were logged");
  for (const one of tokens) assert.ok(!all.includes(one) && !all.includes(one.split(".")[2] ?? one));
});

import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttpsGet } from "./oidc-https.ts";

const credentials = { authorization: "Bearer secret" };

/** A provider on a port of its own; a request below `/to/` is redirected to the URL behind it. */
async function providers(t: TestContext, count: number, answer?: RequestListener) {
  const ca = await newCa({ commonName: "providers" });
  const { certPem: cert, keyPem: key } = await newCertificate({
    ...{ commonName: "provider", dnsNames: ["localhost"], ips: ["127.0.0.1"], usages: ["server"], ca },
  });
  const seen: string[] = [];
  const ports: number[] = [];
  for (let i = 0; i < count; i++) {
    const redirecting: RequestListener = ({ url = "", headers }, response) => {
      seen.push(`${i} ${headers.authorization ?? "nobody"}`);
      const [, location] = /^\/to\/(.+)$/.exec(url) ?? [];
      if (location === undefined) response.end("found");
      else response.writeHead(302, { location: decodeURIComponent(location) }).end();
    };
    const server = createServer({ cert, key }, answer ?? redirecting).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    ports.push((server.address() as AddressInfo).port);
  }
  const end = new AbortController();
  t.after(() => end.abort());
  const urlOf = (i: number, host = "127.0.0.1"): string => `https://${host}:${ports[i]}`;
  return { get: newHttpsGet(ca.certPem, end.signal), seen, urlOf, end };
}

for (const { name, to, want } of [
  { name: "another path", to: () => "/keys", want: "0 Bearer secret" },
  { name: "another port", to: (urlOf: (i: number, host?: string) => string) => `${urlOf(1)}/keys`, want: "1 nobody" },
  {
    name: "another name",
    to: (urlOf: (i: number, host?: string) => string) => `${urlOf(0, "localhost")}/keys`,
    want: "0 nobody",
  },
]) {
  test(`a redirect to ${name} is ${want.endsWith("nobody") ? "followed without" : "followed with"} the credentials`, async (t) => {
    const { get, seen, urlOf } = await providers(t, 2);
    const { status, body } = await get(`${urlOf(0)}/to/${encodeURIComponent(to(urlOf))}`, credentials);
    assert.deepEqual([status, body, seen], [200, "found", ["0 Bearer secret", want]]);
  });
}

test("credentials that were dropped at a redirect do not come back with the next one", async (t) => {
  const { get, seen, urlOf } = await providers(t, 2);
  const back = encodeURIComponent(`${urlOf(0)}/keys`);
  await get(`${urlOf(0)}/to/${encodeURIComponent(`${urlOf(1)}/to/${back}`)}`, credentials);
  assert.deepEqual(seen, ["0 Bearer secret", "1 nobody", "0 nobody"]);
});

test("ten redirects are followed, an eleventh is not, nor one to plain HTTP", async (t) => {
  let left = 0;
  const { get, urlOf } = await providers(t, 1, (_request, response) => {
    if (left-- > 0) response.writeHead(307, { location: "/again" }).end();
    else response.end("found");
  });
  left = 10;
  assert.equal((await get(urlOf(0))).body, "found");
  left = 11;
  await assert.rejects(get(urlOf(0)), /stopped after 10 redirects/);
  await assert.rejects(get("http://127.0.0.1/"), { message: `"http://127.0.0.1/" has invalid scheme, require 'https'` });
  await assert.rejects(get("127.0.0.1/keys"), { message: '"127.0.0.1/keys" is not a URL' });
});

test("an answer of 5 MiB is read, a larger one is refused", async (t) => {
  let bytes = 5 * 1024 * 1024;
  const { get, urlOf } = await providers(t, 1, (_request, response) => response.end(Buffer.alloc(bytes)));
  assert.equal((await get(urlOf(0))).body.length, bytes);
  bytes++;
  await assert.rejects(get(urlOf(0)), /it is too large/);
});

for (const { status, isFollowed } of [
  ...[301, 302, 303, 307, 308].map((code) => ({ status: code, isFollowed: true })),
  { status: 201, isFollowed: false },
  { status: 300, isFollowed: false },
]) {
  test(`an answer with ${status} and a location is ${isFollowed ? "" : "not "}followed`, async (t) => {
    const { get, urlOf } = await providers(t, 1, ({ url }, response) => {
      if (url === "/found") response.end("found");
      else response.writeHead(status, { location: "/found" }).end("here");
    });
    assert.equal((await get(urlOf(0))).body, isFollowed ? "found" : "here");
  });
}

test("an answer that redirects is not read to its end", async (t) => {
  let isClosed = false;
  const { get, urlOf } = await providers(t, 1, ({ url }, response) => {
    if (url === "/found") return void response.end("found");
    response.once("close", () => {
      isClosed = true;
    });
    response.writeHead(302, { location: "/found" }).write("and more");
  });
  await get(urlOf(0));
  await waitFor(() => isClosed, { what: "the connection to be closed", timeoutMs: 10_000 });
});

test("a provider that does not answer within thirty seconds is given up", async (t) => {
  const limits: number[] = [];
  const over = new AbortController();
  t.mock.method(AbortSignal, "timeout", (ms: number) => {
    limits.push(ms);
    return over.signal;
  });
  const { get, urlOf } = await providers(t, 1, (_request, response) => {
    over.abort();
    setImmediate(() => response.end("too late"));
  });
  await assert.rejects(get(urlOf(0)), /abort/);
  assert.deepEqual(limits, [30_000]);
});

test("a provider that switches protocols without being asked is an error", async (t) => {
  const { get, urlOf } = await providers(t, 1, (_request, { socket }) => {
    socket?.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  });
  await assert.rejects(get(urlOf(0)), /tried to switch protocol "x"/);
});

test("requests end with the server", async (t) => {
  const { get, urlOf, end } = await providers(t, 1, () => end.abort());
  await assert.rejects(get(urlOf(0)), /abort/);
});

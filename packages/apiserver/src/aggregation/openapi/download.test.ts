import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ApiService } from "../api-services.ts";
import { newBackends } from "../backends.ts";
import { newFetch } from "./download.ts";

/** A server of an APIService, and a function that downloads from it. */
async function aServer(t: TestContext, answer: RequestListener) {
  const ca = await newCa({ commonName: "ca" });
  const { certPem: cert, keyPem: key } = await newCertificate({
    ...{ commonName: "b", dnsNames: ["b.a.svc"], usages: ["server"], ca },
  });
  const server = createServer({ cert, key }, answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const clock = newFakeClock();
  const fetch = newFetch({
    backends: newBackends({ current: undefined }),
    resolve: () => ({ host: "127.0.0.1", port }),
    clock,
  });
  const get = (
    known?: string,
    { available = "True", caBundle = ca.certPem, service = { namespace: "a", name: "b" } as object | null } = {},
  ) => {
    const apiService = {
      metadata: { name: "v1.example.com" },
      spec: { ...{ groupPriorityMinimum: 1, versionPriority: 1, service }, caBundle: Buffer.from(caBundle).toString("base64") },
      status: { conditions: [{ type: "Available", status: available }] },
    } as ApiService;
    return fetch(apiService, "/openapi/v2", {
      accept: "application/json",
      ...(known !== undefined && { "if-none-match": known }),
    });
  };
  return { get, clock };
}

const own = (text: string): string => `"own-${createHash("sha512").update(text).digest("hex").toUpperCase()}"`;

test("the user is an unprivileged one, and the ETag of a server is sent back to it, one made here is not", async (t) => {
  const seen: unknown[] = [];
  const { get } = await aServer(t, ({ headers, url }, response) => {
    seen.push([url, headers.accept, headers["x-remote-user"], headers["x-remote-group"], headers["if-none-match"]]);
    response.end("{}");
  });
  const { etag } = await get();
  assert.equal(etag, own("{}"));
  for (const known of [etag, '"of-the-server"', ""]) await get(known);
  const asked = (tag?: string) => ["/openapi/v2", "application/json", "system:aggregator", undefined, tag];
  assert.deepEqual(seen, [asked(), asked(), asked('"of-the-server"'), asked()]);
});

test("the server's code, type, ETag and body are passed on", async (t) => {
  const { get } = await aServer(t, (_request, response) => {
    response.writeHead(304, { etag: '"1"', "content-type": "text/x" }).end();
  });
  assert.deepEqual(await get('"1"'), { code: 304, contentType: "text/x", body: Buffer.alloc(0), etag: '"1"' });
});

for (const { name, options, message } of [
  { name: "is not available", options: { available: "False" }, message: "service unavailable" },
  { name: "has no service", options: { service: null }, message: "service unavailable" },
  {
    name: "has a bundle without certificates",
    options: { caBundle: "none" },
    message: "unable to load root certificates: unable to parse bytes as PEM block",
  },
]) {
  test(`a server whose APIService ${name} is not asked`, async (t) => {
    const { get } = await aServer(t, () => assert.fail("it was asked"));
    await assert.rejects(get(undefined, options as never), { message });
  });
}

test("a document that is too long, or breaks off, is an error and leaves no timer", async (t) => {
  const chunk = Buffer.alloc(1024 * 1024);
  let left = 33;
  const { get, clock } = await aServer(t, (_request, response) => {
    const more = (): void => {
      while (left-- > 0) if (!response.write(chunk)) return void response.once("drain", more);
      response.destroy();
    };
    more();
  });
  await assert.rejects(get(), /cannot read \/openapi\/v2: the document at \/openapi\/v2 is longer than 33554432 bytes/);
  left = 1;
  await assert.rejects(get(), /cannot read \/openapi\/v2: /);
  assert.equal(clock.waiting, 0);
});

test("a server that does not answer is given up after a minute", async (t) => {
  const { get, clock } = await aServer(t, () => {});
  const refused = assert.rejects(get(), /^Error: cannot read \/openapi\/v2: ./);
  await waitFor(() => clock.waiting === 1, { what: "the timer" });
  assert.equal(clock.nextDue, clock.now() + 60_000);
  await clock.advance(60_000);
  await refused;
  assert.equal(clock.waiting, 0);
});

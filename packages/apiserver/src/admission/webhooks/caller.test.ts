import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { type CertificateOptions, newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newWebhookCaller, type WebhookCallError } from "./caller.ts";
import type { Credentials } from "./credentials.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const question = { body: "{}", timeoutSeconds: 30 };

/** A webhook behind a URL, and a caller with the credentials of the moment. */
async function aWebhook(t: TestContext, answer: RequestListener, names: Partial<CertificateOptions> = { ips: ["127.0.0.1"] }) {
  const ca = await newCa({ commonName: "hooks" });
  const pair = await newCertificate({ commonName: "hook", ...names, usages: ["server"], ca });
  const options = { cert: pair.certPem, key: pair.keyPem, ca: ca.certPem, requestCert: true, rejectUnauthorized: false };
  const server = createServer(options, answer).listen(0, "127.0.0.1");
  server.keepAliveTimeout = 600_000; // calls are seconds apart on a busy machine
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const withoutNames: number[] = [];
  const credentials: { certificate?: Credentials["certificate"] } = {};
  const caller = newWebhookCaller(
    () => ({ host: "127.0.0.1", port: 1 }),
    () => ({ headers: {}, ...credentials }),
    new Turns(),
    { missingSan: () => void withoutNames.push(1) },
  );
  const client = async (commonName: string) => {
    const { certPem: cert, keyPem: key } = await newCertificate({ commonName, usages: ["client"], ca });
    return { cert, key };
  };
  return { caller, url, caBundle: base64(ca.certPem), credentials, client, withoutNames };
}

test("a webhook is called with the client certificate of the moment, over the same connection while that is the same", async (t) => {
  const seen: string[] = [];
  const connections = new Set<unknown>();
  const { caller, url, caBundle, credentials, client } = await aWebhook(t, ({ socket }, response) => {
    connections.add(socket);
    seen.push(`${(socket as TLSSocket).getPeerCertificate().subject?.CN}`);
    response.end("{}");
  });
  const [old, renewed] = [await client("old"), await client("renewed")];
  for (const certificate of [old, { ...old }, renewed, undefined]) {
    if (certificate === undefined) delete credentials.certificate;
    else credentials.certificate = certificate;
    await caller.call({ url, caBundle }, question);
  }
  assert.deepEqual([seen, connections.size], [["old", "old", "renewed", "undefined"], 3]);
});

test("a webhook whose CA bundle was replaced by another authority's is no longer believed", async (t) => {
  const { caller, url, caBundle } = await aWebhook(t, (_request, response) => response.end("{}"));
  await caller.call({ url, caBundle }, question);
  const other = base64((await newCa({ commonName: "other" })).certPem);
  await assert.rejects(caller.call({ url, caBundle: other }, question), /certificate signed by unknown authority/);
  await caller.call({ url, caBundle }, question);
});

test("after calls with two hundred other CA bundles a webhook gets a new connection", async (t) => {
  const connections = new Set<unknown>();
  const { caller, url, caBundle } = await aWebhook(t, ({ socket }, response) => {
    connections.add(socket);
    response.end("{}");
  });
  const callOthers = async (from: number, to: number): Promise<void> => {
    for (let i = from; i < to; i++)
      await assert.rejects(caller.call({ url: "https://127.0.0.1:1/", caBundle: base64(`${i}`) }, question));
  };
  await caller.call({ url, caBundle }, question);
  await callOthers(0, 200);
  await caller.call({ url, caBundle }, question);
  assert.equal(connections.size, 1);
  await callOthers(200, 201);
  await caller.call({ url, caBundle }, question);
  assert.equal(connections.size, 2);
});

test("a webhook behind a Service is called, and verified, by the Service's name", async (t) => {
  let host: string | undefined;
  const answer: RequestListener = ({ headers }, response) => {
    ({ host } = headers);
    response.end("{}");
  };
  const { url, caBundle } = await aWebhook(t, answer, { dnsNames: ["hook.web.svc"] });
  const located = { host: "127.0.0.1", port: Number(new URL(url).port) };
  const caller = newWebhookCaller(
    () => located,
    () => ({ headers: {} }),
    new Turns(),
  );
  await caller.call({ service: { namespace: "web", name: "hook", port: 8443 }, caBundle }, question);
  assert.equal(host, "hook.web.svc:8443");
});

test("a webhook whose certificate has its address as common name only is refused and counted", async (t) => {
  const answer: RequestListener = (_request, response) => response.end("{}");
  const legacy = await aWebhook(t, answer, { commonName: "127.0.0.1" });
  await assert.rejects(
    legacy.caller.call({ url: legacy.url, caBundle: legacy.caBundle }, question),
    /x509: certificate relies on legacy Common Name field, use SANs instead$/,
  );
  assert.equal(legacy.withoutNames.length, 1);
  const proper = await aWebhook(t, answer);
  await proper.caller.call({ url: proper.url, caBundle: proper.caBundle }, question);
  assert.equal(proper.withoutNames.length, 0);
});

test("a call ends with its request, before its timeout", async (t) => {
  const request = new AbortController();
  const { caller, url, caBundle } = await aWebhook(t, () => request.abort());
  let failure: WebhookCallError | undefined;
  caller.call({ url, caBundle }, { ...question, timeoutSeconds: 3600, signal: request.signal }).catch((err: WebhookCallError) => {
    failure = err;
  });
  const { message } = await waitFor(() => failure, { what: "the end of the call" });
  assert.equal(message, `Post "${url}": context deadline exceeded`);
});

test("an answer that breaks off in the middle is a failure", async (t) => {
  const { caller, url, caBundle } = await aWebhook(t, ({ socket }, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("{", () => socket.destroy());
  });
  let failure: WebhookCallError | undefined;
  caller.call({ url, caBundle }, { ...question, timeoutSeconds: 3600 }).catch((err: WebhookCallError) => {
    failure = err;
  });
  const { message, code } = await waitFor(() => failure, { what: "the end of the call" });
  assert.deepEqual([message.startsWith(`Post "${url}": `), code], [true, 503]);
});

for (const { status, isTaken } of [
  { status: 200, isTaken: true },
  { status: 206, isTaken: true },
  { status: 207, isTaken: false },
  { status: 301, isTaken: false },
]) {
  test(`an answer with the status ${status} is ${isTaken ? "" : "not "}taken`, async (t) => {
    const { caller, url, caBundle } = await aWebhook(t, (_request, response) => void response.writeHead(status).end("{}"));
    const answered = caller.call({ url, caBundle }, question);
    if (isTaken) assert.equal(String(await answered), "{}");
    else await assert.rejects(answered, { code: status });
  });
}

test("an answer of more than 16 MiB is a failure, one of 16 MiB is not", async (t) => {
  const most = 16 * 1024 * 1024;
  for (const { size, isTaken } of [
    { size: most, isTaken: true },
    { size: most + 1, isTaken: false },
  ]) {
    const { caller, url, caBundle } = await aWebhook(t, (_request, response) => void response.end(Buffer.alloc(size, " ")));
    const answered = caller.call({ url, caBundle }, question);
    if (isTaken) assert.equal((await answered).length, most);
    else await assert.rejects(answered, /the answer is too large/);
  }
});

test("a long answer is read in turns of the event loop, a short one is not", async (t) => {
  const iterations: (() => void)[] = [];
  const turns = new Turns(
    () => 0,
    (run) => iterations.push(run),
  );
  const lengths = [32 * 1024, 4 * 1024 * 1024];
  const { url, caBundle } = await aWebhook(t, (_request, response) => void response.end("x".repeat(lengths.shift() ?? 0)));
  const caller = newWebhookCaller(
    () => ({ host: "", port: 0 }),
    () => ({ headers: {} }),
    turns,
  );
  assert.equal((await caller.call({ url, caBundle }, question)).length, 32 * 1024);
  let isRead = false;
  const answer = caller.call({ url, caBundle }, question).finally(() => {
    isRead = true;
  });
  let ran = 0;
  await waitFor(
    () => {
      if (iterations.length > 0) ran++;
      iterations.shift()?.();
      return isRead;
    },
    { what: "the answer to be read" },
  );
  assert.equal((await answer).length, 4 * 1024 * 1024);
  assert.ok(ran >= 4, `${ran} iterations`);
});

test("each call is observed once, by its code or as an error", async (t) => {
  const codes = [200, 500, 0];
  const observed: string[] = [];
  const observer = { requested: (verb: string, host: string, code: string) => void observed.push(`${verb} ${host} ${code}`) };
  const { url, caBundle } = await aWebhook(t, ({ socket }, response) => {
    const code = codes.shift();
    if (code === 0) socket.destroy();
    else response.writeHead(code ?? 200).end("{}");
  });
  const caller = newWebhookCaller(
    () => ({ host: "", port: 0 }),
    () => ({ headers: {} }),
    new Turns(),
    { observer } as never,
  );
  for (let call = 0; call < 3; call++) await caller.call({ url, caBundle }, question).catch(() => {});
  const { host } = new URL(url);
  assert.deepEqual(observed, [`POST ${host} 200`, `POST ${host} 500`, `POST ${host} <error>`]);
});

test("a service is dialled through the tunnel of services, a URL through its own, this server itself directly", async () => {
  const dialled: string[] = [];
  const through = (name: string) => async () => {
    dialled.push(name);
    throw new Error("no way");
  };
  const caller = newWebhookCaller(
    () => ({ host: "127.0.0.1", port: 1 }),
    () => ({ headers: {} }),
    new Turns(),
    {
      ...{ toServices: through("services"), toUrls: through("urls") },
    } as never,
  );
  for (const config of [
    { service: { namespace: "web", name: "hook" } },
    { url: "https://127.0.0.1:1/" },
    { service: { namespace: "default", name: "kubernetes" } },
  ]) {
    await assert.rejects(caller.call(config, question));
    dialled.push(".");
  }
  assert.deepEqual(dialled, ["services", ".", "urls", ".", "."]);
});

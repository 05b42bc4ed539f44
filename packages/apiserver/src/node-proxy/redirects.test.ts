import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { asyncListener } from "@coxswain/apimachinery/testing/async-listener";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { RequestContext } from "../request/context.ts";
import { mostRedirects, redirectTarget } from "./redirects.ts";
import { newNodeProxy } from "./upstream.ts";

const log = { v: () => undefined } as never;
const pod = { group: "", resource: "pods", name: "web-0" };
const upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";

/** A kubelet and its runtime's streaming server. @param answer chunks of the response to the n-th request */
async function aKubelet(t: TestContext, answer: (count: number) => string[]) {
  const heard: string[] = [];
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once(
      "data",
      asyncListener(async (head) => {
        const pieces = answer(heard.push(head.toString()) - 1);
        for (const piece of pieces) {
          socket.write(piece);
          await new Promise(setImmediate);
        }
        socket.pipe(socket);
      }),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { heard, host: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const redirect = (location: string): string[] => [
  "HTTP/1.1 302 Found\r\nContent-",
  `Length: 0\r\nlocation: ${location}\r\n`,
  "\r\n",
];

/** @returns the first bytes of the response to the client, or the error */
async function exec(
  t: TestContext,
  host: string,
  redirects?: { sameHost: boolean },
): Promise<{ answer: string; socket?: Socket }> {
  const front = createServer();
  const answered = new Promise<{ answer: string }>((resolve) => {
    front.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
      const { headers } = req;
      const exchange = { method: "POST", url: req.url, headers, remoteAddress: "10.1.2.3", upgrade: { socket, head } } as unknown;
      const ctx = { exchange: exchange as Exchange, signal: new AbortController().signal } as unknown as RequestContext;
      const target = { url: new URL(`http://${host}/exec/a/b/c?command=sh`), toNode: true, as: "tunnel" } as const;
      newNodeProxy({ log, redirects })
        .forward(ctx, target, pod)
        .catch((err: Error) => resolve({ answer: err.message }));
    });
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  t.after(() => front.close());
  const socket = connect((front.address() as AddressInfo).port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.write(
    "POST / HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nAuthorization: Bearer secret\r\n\r\n",
  );
  const first = once(socket, "data").then(([data]: Buffer[]) => ({ answer: String(data), socket }));
  return Promise.race([answered, first]);
}

test("a kubelet's redirect is followed with a GET for the same upgrade, and what comes then is the client's", async (t) => {
  const kubelet = await aKubelet(t, (count) => (count === 0 ? redirect("/cri/exec/token") : [upgraded]));
  const { answer, socket } = await exec(t, kubelet.host, { sameHost: true });
  assert.equal(answer, upgraded);
  const [first, second] = kubelet.heard;
  assert.match(first ?? "", /^POST \/exec\/a\/b\/c\?command=sh HTTP\/1\.1\r\n/);
  assert.match(second ?? "", /^GET \/cri\/exec\/token HTTP\/1\.1\r\n/);
  for (const request of kubelet.heard) {
    assert.match(request, /\r\nupgrade: SPDY\/3\.1\r\n/i);
    assert.ok(request.includes(`\r\nhost: ${kubelet.host}\r\n`));
    assert.doesNotMatch(request, /authorization/i);
  }
  socket?.write("echo");
  assert.equal(String(((await once(socket as Socket, "data")) as Buffer[])[0]), "echo");
});

test("an answer may come in pieces, before its code, too", async (t) => {
  const kubelet = await aKubelet(t, () => ["HTT", "P/1.1 1", upgraded.slice("HTTP/1.1 1".length)]);
  const { answer, socket } = await exec(t, kubelet.host);
  assert.ok(upgraded.startsWith(answer) && answer.startsWith("HTTP/1.1 101"), answer);
  assert.ok(socket);
});

for (const { name, redirects, location, want } of [
  {
    name: "where they are not followed",
    redirects: undefined,
    location: "/x",
    want: "invalid upgrade response: status code 302",
  },
  {
    name: "to another host",
    redirects: { sameHost: true },
    location: "http://192.0.2.1/x",
    want: "hostname mismatch: expected 127.0.0.1, found 192.0.2.1",
  },
  {
    name: "to the cloud's own address",
    redirects: { sameHost: false },
    location: "http://169.254.169.254/x",
    want: "address not allowed",
  },
  { name: "to nowhere", redirects: { sameHost: true }, location: "", want: "302 response missing Location header" },
  {
    name: "in a circle",
    redirects: { sameHost: true },
    location: "/again",
    want: `too many redirects (${mostRedirects + 1})`,
  },
]) {
  test(`a kubelet's redirect ${name} is an error`, async (t) => {
    const kubelet = await aKubelet(t, () => redirect(location));
    assert.deepEqual(await exec(t, kubelet.host, redirects), { answer: want });
  });
}

test("a kubelet that redirects for ever gets ten requests; nine redirects are followed to their end", async (t) => {
  const forever = await aKubelet(t, () => redirect("/again"));
  await exec(t, forever.host, { sameHost: true });
  assert.equal(forever.heard.length, 10);
  const patient = await aKubelet(t, (count) => (count < mostRedirects ? redirect("/again") : [upgraded]));
  const { answer } = await exec(t, patient.host, { sameHost: true });
  assert.deepEqual([answer.slice(0, 12), patient.heard.length], ["HTTP/1.1 101", 10]);
});

test("an answer whose head has no end is not followed", async (t) => {
  const kubelet = await aKubelet(t, () => [
    "HTTP/1.1 302 Found\r\n",
    ...Array.from({ length: 20 }, () => `x: ${"y".repeat(1000)}\r\n`),
  ]);
  assert.deepEqual(await exec(t, kubelet.host, { sameHost: true }), { answer: "invalid upgrade response: status code 302" });
});

for (const { location, want } of [
  { location: "https://10.0.0.1:8080/a?b=c", want: "https://10.0.0.1:8080/a?b=c" },
  { location: "d", want: "https://10.0.0.1:10250/exec/d" },
  { location: "http://[::1", want: /^malformed Location header/ },
  { location: "ftp://10.0.0.1/", want: /^error dialing backend: unknown scheme: ftp$/ },
]) {
  test(`a redirect to ${location}`, () => {
    const from = { url: new URL("https://10.0.0.1:10250/exec/a"), toNode: true, as: "tunnel" } as const;
    const lead = (): string => redirectTarget(`HTTP/1.1 302 Found\r\nLocation: ${location}`, from, from.url, true).url.href;
    if (typeof want === "string") assert.equal(lead(), want);
    else assert.throws(lead, { message: want });
  });
}

test("a redirect of a redirect is relative to that one, is measured by the first host, and keeps the rest of the target", () => {
  const first = new URL("https://10.0.0.1:10250/exec/a");
  const from = { url: new URL("https://10.0.0.2:10250/cri/b"), toNode: true, skipVerify: true, as: "tunnel" } as const;
  const lead = (location: string, sameHost: boolean) =>
    redirectTarget(`HTTP/1.1 302 Found\r\nLocation: ${location}`, from, first, sameHost);
  assert.deepEqual(lead("c", false), { ...from, url: new URL("https://10.0.0.2:10250/cri/c") });
  assert.throws(() => lead("c", true), { message: "hostname mismatch: expected 10.0.0.1, found 10.0.0.2" });
  assert.equal(lead("https://10.0.0.1/d", true).url.href, "https://10.0.0.1/d");
});

test("a Location header full of spaces takes no longer to read than another", () => {
  const from = { url: new URL("https://10.0.0.1:10250/exec/a"), toNode: true, as: "tunnel" } as const;
  const head = `HTTP/1.1 302 Found\r\nLocation: b${" ".repeat(16_000)}c\t \r\nX: y`;
  const tookMs = cpuMsOf(() => {
    assert.equal(redirectTarget(head, from, from.url, true).url.pathname.length, "/exec/b".length + 16_000 * "%20".length + 1);
  });
  assert.ok(tookMs < 250, `${tookMs} ms`);
});

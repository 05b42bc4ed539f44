import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { WebSocket } from "ws";
import { createCluster } from "../../create-cluster.ts";
import { FakeKubelet } from "./fake-kubelet.ts";
import type { Exec, Logs } from "./rules.ts";

const startedAt = "2022-01-01T00:05:00Z";
const later = "2022-01-01T00:06:00Z";
const container = (name: string, state: object | undefined, more: object = {}): object => ({
  ...{ name, ready: true, restartCount: 0, image: "", imageID: "", ...(state && { state }) },
  ...more,
});
const running = { running: { startedAt } };
const aPod = (name: string, ...containerStatuses: object[]): Pod =>
  ({
    metadata: { name, namespace: "default", uid: `uid-${name}` },
    spec: { containers: [] },
    status: { containerStatuses },
  }) as Pod;

/** The kubelet of one pod, and connections to it in memory. */
function aKubelet({
  pod = aPod("web", container("main", running)),
  logs = ["line"],
  exec,
}: {
  pod?: Pod;
  logs?: Logs;
  exec?: Exec;
}) {
  let current: Pod | undefined = pod;
  const waiting = new Set<() => void>();
  const kubelet = new FakeKubelet(
    {
      podOf: (namespace, name) => (current?.metadata.name === name && namespace === "default" ? current : undefined),
      answersOf: () => ({ logs, exec }),
      changed: (signal) =>
        new Promise((resolve, reject) => {
          waiting.add(resolve);
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        }),
    },
    newFakeClock(Date.parse("2022-01-01T00:10:00Z")),
  );
  const connect = (): Duplex => {
    const [near, far] = duplexPair();
    near.once("close", () => far.destroy());
    far.once("close", () => near.destroy());
    kubelet.answer(far);
    return near;
  };
  const open = (path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> => {
    const agent = new Agent();
    agent.createConnection = connect;
    const sent = request({ agent, path, headers });
    sent.on("upgrade", (response) => void response.destroy());
    sent.end();
    return once(sent, "response").then(([response]) => response as IncomingMessage);
  };
  const get = async (path: string, headers?: Record<string, string>) => {
    const response = await open(path, headers);
    return [response.statusCode, await text(response)];
  };
  const change = (next: Pod | undefined): void => {
    current = next;
    for (const resolve of waiting) resolve();
    waiting.clear();
  };
  return { get, open, connect, change };
}

const ended = { terminated: { exitCode: 1, startedAt: later, finishedAt: later } };

for (const [path, want, pod] of [
  ["/healthz", [200, "ok"]],
  ["/pods", [404, "fake nodes serve logs and exec only\n"]],
  ["/containerLogs/default/gone/main", [404, 'pod "gone" does not exist\n']],
  ["/containerLogs/other/web/main", [404, 'pod "web" does not exist\n']],
  ["/containerLogs/default/web/main?timestamps=1", [200, "2022-01-01T00:05:00.000000000Z line\n"]],
  ["/containerLogs/default/web/main?sinceSeconds=299", [200, ""]],
  ["/containerLogs/default/web/main?sinceSeconds=300", [200, "line\n"]],
  ["/containerLogs/default/web/gone", [400, 'container "gone" in pod "web" is waiting to start: no logs yet']],
  [
    "/containerLogs/default/web/main",
    [400, 'container "main" in pod "web" is waiting to start: ErrImagePull'],
    aPod("web", container("main", { waiting: { reason: "ErrImagePull" } })),
  ],
  [
    "/containerLogs/default/web/main?timestamps=1",
    [200, "2022-01-01T00:06:00.000000000Z line\n"],
    aPod("web", container("main", { waiting: { reason: "CrashLoopBackOff" } }, { lastState: ended })),
  ],
  [
    "/containerLogs/default/web/main?timestamps=1",
    [200, "2022-01-01T00:06:00.000000000Z line\n"],
    aPod("web", container("other", running), container("main", ended)),
  ],
  ["/containerLogs/default/web/main?previous=true", [400, 'previous terminated container "main" in pod "web" not found']],
  [
    "/containerLogs/default/web/main?previous=true&timestamps=1&follow=1",
    [200, "2022-01-01T00:06:00.000000000Z line\n"],
    aPod("web", container("main", running, { lastState: ended })),
  ],
  [
    "/containerLogs/default/web/init",
    [200, "line\n"],
    { ...aPod("web"), status: { initContainerStatuses: [container("init", ended)] } } as Pod,
  ],
  [
    "/containerLogs/default/web/debug",
    [200, "line\n"],
    { ...aPod("web"), status: { ephemeralContainerStatuses: [container("debug", running)] } } as Pod,
  ],
] as [string, [number, string], Pod?][]) {
  test(`a fake kubelet answers ${path} with ${want.join(" ").trim()}`, async () => {
    assert.deepEqual(await aKubelet(pod === undefined ? {} : { pod }).get(path), want);
  });
}

test("a log function is told what is asked for; its failure is the answer", async () => {
  const asked: unknown[] = [];
  const logs: Logs = ({ pod, container: name, previous, follow }) => {
    asked.push([pod.metadata.name, name, previous, follow]);
    throw new Error("no log");
  };
  const pod = aPod("web", container("main", running, { lastState: ended }));
  const { get } = aKubelet({ pod, logs });
  assert.deepEqual(await get("/containerLogs/default/web/main"), [500, "no log"]);
  await get("/containerLogs/default/web/main?previous=true&follow=true");
  assert.deepEqual(asked, [
    ["web", "main", false, false],
    ["web", "main", true, true],
  ]);
});

test("a log that breaks midway breaks the connection: what was sent is not taken for all", async () => {
  async function* logs(): AsyncGenerator<string> {
    yield "first";
    throw new Error("broken");
  }
  const response = await aKubelet({ logs: () => logs() }).open("/containerLogs/default/web/main");
  assert.equal(response.statusCode, 200);
  await assert.rejects(text(response), { code: "ECONNRESET" });
});

for (const [what, next] of [
  ["has ended", aPod("web", container("main", ended))],
  ["was restarted", aPod("web", container("main", running, { restartCount: 1 }))],
  [
    "is that of another pod",
    { ...aPod("web", container("main", running)), metadata: { name: "web", namespace: "default", uid: "new" } },
  ],
  ["is gone with its pod", undefined],
] as [string, Pod | undefined][]) {
  test(`a log that is followed ends when its container ${what}, and not before`, async () => {
    const { open, change } = aKubelet({});
    const response = await open("/containerLogs/default/web/main?follow=true");
    let seen: string | undefined;
    const all = text(response).then((said) => {
      seen = said;
    });
    await settle();
    change(aPod("web", container("main", running), container("other", ended)));
    await settle();
    assert.equal(seen, undefined, "another container changed");
    change(next);
    await all;
    assert.equal(seen, "line\n");
  });
}

test("a log function hears that its reader is gone", async () => {
  const heard = Promise.withResolvers<unknown>();
  async function* logs(signal: AbortSignal): AsyncGenerator<string> {
    yield "first";
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    heard.resolve(signal.reason);
  }
  const response = await aKubelet({ logs: ({ signal }) => logs(signal) }).open("/containerLogs/default/web/main?follow=1");
  await once(response, "data");
  response.destroy();
  assert.match(String(await heard.promise), /the reader is gone/);
});

const upgrade = (protocol: string): Record<string, string> => ({ connection: "Upgrade", upgrade: protocol });
const spdy = upgrade("SPDY/3.1");
const answers: Exec = () => 0;

for (const [path, headers, want, given = { exec: answers }] of [
  ["/attach/default/web/main", spdy, [404, "fake nodes have no attach"]],
  ["/exec/default/gone/main", spdy, [404, "pod does not exist"]],
  ["/exec/default/web/gone", spdy, [500, 'container not found ("gone")']],
  [
    "/exec/default/web/main",
    spdy,
    [500, 'container not found ("main")'],
    { exec: answers, pod: aPod("web", container("main", ended)) },
  ],
  ["/exec/default/web/main", spdy, [500, "the pods rule of default/web has no `exec`, the function that answers commands"], {}],
  ["/exec/default/web/main", upgrade("h2c"), [400, 'unable to upgrade to "h2c"']],
  [
    "/exec/default/web/main",
    { ...spdy, "x-stream-protocol-version": "v9.channel.k8s.io, v8" },
    [
      403,
      "unable to negotiate protocol: client supports [v9.channel.k8s.io v8], server accepts [v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]",
    ],
  ],
] as [string, Record<string, string>, [number, string], Parameters<typeof aKubelet>[0]?][]) {
  test(`a fake kubelet refuses the upgrade ${path} to ${headers["upgrade"]}: ${want[1].slice(0, 50)}`, async () => {
    assert.deepEqual(await aKubelet(given).get(path, headers), want);
  });
}

/** A client library's command over a WebSocket. @returns the messages of the server as channel and text, until it closes */
async function overWebSocket(exec: Exec, query: string, protocols: string[], sent: (string | Buffer)[] = []) {
  const { connect } = aKubelet({ exec });
  const socket = new WebSocket(`ws://node/exec/default/web/main?${query}`, protocols, { createConnection: connect as never });
  const messages: string[] = [];
  socket.on("message", (message: Buffer, isBinary: boolean) => {
    messages.push(isBinary ? `${message[0]} ${message.subarray(1)}` : `${message}`);
  });
  socket.on("open", () => {
    for (const message of sent) socket.send(message);
  });
  const [code] = await once(socket, "close");
  return { messages, code, protocol: socket.protocol };
}

const cat: Exec = async ({ stdin, stdout, stderr, command, container: name, onResize }) => {
  const sizes: unknown[] = [];
  onResize((size) => sizes.push(size));
  const [chunk] = (await once(stdin, "data")) as [Buffer];
  await stdout(`${name} ${command.join(" ")}: ${chunk} ${JSON.stringify(sizes)}`);
  await stderr("err");
  return 3;
};
const status3 = `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","message":"command terminated with non-zero exit code: exit status 3","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`;
const inBase64 = (channel: number, said: string): string => `${channel}${Buffer.from(said).toString("base64")}`;

test("a command over a WebSocket has its channels, with a Status at the end", async () => {
  const resize = Buffer.from('\x04{"Width":80,"Height":24}');
  const wrong = Buffer.from("\x04no JSON");
  const sent = [wrong, resize, Buffer.from("\x00"), Buffer.from("\x03ignored"), Buffer.from("\x00in")];
  const offered = ["other", "base64.channel.k8s.io", "v4.channel.k8s.io"];
  assert.deepEqual(await overWebSocket(cat, "command=a&command=b&input=1", offered, sent), {
    messages: ['1 main a b: in [{"width":80,"height":24}]', "2 err", `3 ${status3}`],
    ...{ code: 1000, protocol: "v4.channel.k8s.io" },
  });
});

test("a command over a WebSocket of text has its channels in base64, and only the message where there is no Status", async () => {
  const sent = [inBase64(4, '{"Width":1,"Height":2}'), inBase64(0, "in")];
  const message = "command terminated with non-zero exit code: exit status 3";
  const output = inBase64(1, 'main : in [{"width":1,"height":2}]');
  assert.deepEqual(await overWebSocket(cat, "", ["base64.channel.k8s.io"], sent), {
    messages: [output, inBase64(2, "err"), inBase64(3, message)],
    ...{ code: 1000, protocol: "base64.channel.k8s.io" },
  });
  assert.deepEqual((await overWebSocket(cat, "", ["v4.base64.channel.k8s.io"], sent)).messages, [
    output,
    inBase64(2, "err"),
    inBase64(3, status3),
  ]);
  assert.deepEqual((await overWebSocket(() => 0, "", ["channel.k8s.io"])).messages, [], "success says nothing");
});

test("a command hears that its client over a WebSocket is gone, and its input ends", async () => {
  const heard = Promise.withResolvers<unknown>();
  const exec: Exec = async ({ stdin, signal }) => {
    const all = await stdin.toArray();
    if (!signal.aborted) await once(signal, "abort");
    heard.resolve([Buffer.concat(all).toString(), String(signal.reason)]);
    return 0;
  };
  const { connect } = aKubelet({ exec });
  const socket = new WebSocket("ws://node/exec/default/web/main", ["v4.channel.k8s.io"], { createConnection: connect as never });
  await once(socket, "open");
  socket.send(Buffer.from("\x00in"));
  socket.close();
  assert.deepEqual(await heard.promise, ["in", "Error: the client is gone"]);
});

test("reading a log does not advance virtual time, and a followed log ends with its container", async () => {
  await using cluster = await createCluster({
    controllers: false,
    clock: "virtual",
    pods: [{ logs: ({ previous }) => [previous ? "before" : "now"], ends: { after: "1m", exitCode: 1 } }],
  });
  const pod = { metadata: { name: "web", namespace: "default" }, spec: { containers: [{ name: "c", image: "i" }] } };
  await cluster.client.create(pods, pod as never);
  await cluster.advance("5s");
  const before = cluster.now();
  const log = async (query: string) => {
    const { status, body } = await cluster.client.raw("GET", `/api/v1/namespaces/default/pods/web/log?${query}`);
    return [status, body.toString()];
  };
  assert.match((await log("timestamps=true")).join(" "), /^200 2022-01-01T00:00:0\d\.000000000Z now\n$/);
  assert.ok(cluster.now() - before < 1_000, `time moved by ${cluster.now() - before} ms`);
  assert.equal((await log("previous=true"))[0], 400);
  const followed = log("follow=true");
  await cluster.advance("2m");
  assert.deepEqual(await followed, [200, "now\n"]);
  assert.deepEqual(await log("previous=true"), [200, "before\n"]);
});

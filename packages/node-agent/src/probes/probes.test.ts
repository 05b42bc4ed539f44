import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { PodStatus, Probe } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { answer, answerRaw, startGrpcServer } from "@coxswain/apimachinery/transport/grpc/testing/grpc-server";
import { RuntimeError } from "../runtime/runtime.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { type FakeRuntime, newFakeRuntime } from "../testing/fake-runtime.ts";
import { probeExec } from "./exec.ts";
import { probeGrpc } from "./grpc.ts";
import { httpTarget, portNumber, probeHttp } from "./http.ts";
import { newHookRunner } from "./lifecycle-hooks.ts";
import { type ProbeKind, ProbeManager } from "./probe-manager.ts";
import { probeTcp } from "./tcp.ts";

async function httpServer(
  t: TestContext,
): Promise<{ url(path: string): URL; seen: { path: string; headers: NodeJS.Dict<string[]> }[] }> {
  const seen: { path: string; headers: NodeJS.Dict<string[]> }[] = [];
  const server = createServer((request, response) => {
    seen.push({ path: request.url ?? "", headers: request.headersDistinct });
    const path = request.url ?? "";
    if (path === "/slow") return;
    if (path === "/switch") {
      const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
      return void response.socket?.write(switching);
    }
    if (path === "/big") return void response.end("x".repeat(100_000));
    if (path === "/redirect") return void response.writeHead(302, { location: "/ok" }).end();
    if (path === "/elsewhere") return void response.writeHead(302, { location: "http://elsewhere.invalid/" }).end("gone");
    if (path === "/nowhere") return void response.writeHead(302).end("where?");
    if (path === "/unchanged") return void response.writeHead(304, { location: "/bad" }).end();
    if (path === "/broken") return void response.writeHead(302, { location: "http://[" }).end();
    if (path === "/into") return void response.writeHead(302, { location: "/ok-folder/second" }).end();
    if (path === "/ok-folder/second") return void response.writeHead(302, { location: "third" }).end();
    if (path === "/permanent") return void response.writeHead(308, { location: "/ok" }).end();
    if (path === "/300") return void response.writeHead(300, { location: "/bad" }).end("choose");
    if (path === "/299") return void response.writeHead(299).end("fine");
    if (path === "/399") return void response.writeHead(399).end();
    if (path === "/400") return void response.writeHead(400).end();
    if (path === "/loop") return void response.writeHead(302, { location: "/loop" }).end();
    response.writeHead(path.startsWith("/ok") ? 200 : 503).end("body");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, url: (path) => new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`) };
}

for (const { path, result, output } of [
  { path: "/ok", result: "success", output: /^body$/ },
  { path: "/bad", result: "failure", output: /^HTTP probe failed with statuscode: 503$/ },
  { path: "/switch", result: "failure", output: /^HTTP probe failed with statuscode: 101$/ },
  { path: "/redirect", result: "success", output: /^body$/ },
  { path: "/elsewhere", result: "warning", output: /^Probe terminated redirects, Response body: gone$/ },
  { path: "/into", result: "success", output: /^body$/ },
  { path: "/permanent", result: "success", output: /^body$/ },
  { path: "/299", result: "success", output: /^fine$/ },
  { path: "/300", result: "warning", output: /^Probe terminated redirects, Response body: choose$/ },
  { path: "/399", result: "warning", output: /^Probe terminated redirects, Response body: $/ },
  { path: "/400", result: "failure", output: /^HTTP probe failed with statuscode: 400$/ },
  { path: "/loop", result: "failure", output: /stopped after 10 redirects/ },
  { path: "/nowhere", result: "warning", output: /^Probe terminated redirects, Response body: where\?$/ },
  { path: "/unchanged", result: "warning", output: /^Probe terminated redirects, Response body: $/ },
  { path: "/broken", result: "failure", output: /^Get "http:.*\/broken": Invalid URL$/ },
  { path: "/big", result: "success", output: /^x{10240}$/ },
  { path: "/slow", result: "failure", output: /context deadline exceeded \(Client\.Timeout exceeded while awaiting headers\)$/ },
]) {
  test(`an HTTP probe of ${path} is a ${result}`, async (t) => {
    const { url, seen } = await httpServer(t);
    const outcome = await probeHttp(url(path), new Map(), path === "/slow" ? 50 : 60_000);
    assert.equal(outcome.result, result);
    assert.match(outcome.output, output);
    assert.ok(seen.length <= 10);
  });
}

test("the connection of an unsolicited upgrade is closed", async (t) => {
  let closed = false;
  const server = createTcpServer((socket) => {
    socket.resume().once("close", () => {
      closed = true;
    });
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  });
  const port = await listening(t, server);
  const outcome = await probeHttp(new URL(`http://127.0.0.1:${port}/`), new Map(), 60_000);
  assert.equal(outcome.result, "failure");
  await waitFor(() => closed, { what: "the connection to be closed" });
});

test("an endless response is read up to 10 KiB, then its connection is closed", async (t) => {
  const answering = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => {
    response.write("x".repeat(20_000));
    answering.resolve(response);
  });
  const port = await listening(t, server);
  const closed = answering.promise.then((response) => new Promise((resolve) => response.once("close", resolve)));
  const { result, output } = await probeHttp(new URL(`http://127.0.0.1:${port}/`), new Map(), 60_000);
  assert.deepEqual([result, output.length], ["success", 10_240]);
  await closed;
});

test("a redirect to another port of the host is followed, and no certificate is verified", async (t) => {
  const pair = await newCa({ commonName: "unknown" });
  const secure = createTlsServer({ cert: pair.certPem, key: pair.keyPem }, (_request, response) => response.end("secure"));
  const to = await listening(t, secure);
  const plain = createServer((_request, response) => response.writeHead(302, { location: `https://127.0.0.1:${to}/` }).end());
  const url = new URL(`http://127.0.0.1:${await listening(t, plain)}/`);
  assert.deepEqual(await probeHttp(url, new Map(), 60_000), { result: "success", output: "secure" });
});

test("an HTTP probe sends kube-probe as User-Agent, and the configured headers", async (t) => {
  const { url, seen } = await httpServer(t);
  const httpHeaders = [
    { name: "Host", value: "app.example" },
    { name: "X-Twice", value: "1" },
    { name: "x-twice", value: "2" },
    { name: "constructor", value: "fine" },
    { name: "Accept", value: "" },
  ];
  const { headers } = httpTarget({ port: 80, httpHeaders }, aContainer(), "127.0.0.1");
  await probeHttp(url("/ok?x=1"), headers, 60_000);
  assert.equal(seen[0]?.path, "/ok?x=1");
  assert.deepEqual(
    { ...seen[0]?.headers },
    {
      host: ["app.example"],
      "x-twice": ["1", "2"],
      constructor: ["fine"],
      "user-agent": ["kube-probe/1.23"],
      connection: ["close"],
    },
  );
  await probeHttp(url("/ok"), new Map(), 60_000);
  assert.deepEqual(seen[1]?.headers.accept, ["*/*"]);
});

test("an HTTP lifecycle hook uses plain HTTP and its port, whatever its scheme", async (t) => {
  const { url, seen } = await httpServer(t);
  const httpGet = { port: Number(url("/").port), path: "/hook", scheme: "HTTPS", httpHeaders: [{ name: "X", value: "y" }] };
  const call = { pod: aNodePod(), container: aContainer(), containerId: "c", podIp: "127.0.0.1" };
  await newHookRunner(newFakeRuntime(newFakeClock()))({ ...call, handler: { httpGet } });
  assert.deepEqual([seen[0]?.path, seen[0]?.headers.x], ["/hook", undefined]);
});

test("a closed port is a failure", async () => {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  assert.equal((await probeTcp("127.0.0.1", port, 60_000)).result, "success");
  await new Promise((resolve) => server.close(resolve));
  assert.deepEqual(await probeTcp("127.0.0.1", port, 60_000), {
    result: "failure",
    output: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
  });
  const http = await probeHttp(new URL(`http://127.0.0.1:${port}/x`), new Map(), 60_000);
  assert.equal(http.output, `Get "http://127.0.0.1:${port}/x": dial tcp 127.0.0.1:${port}: connect: connection refused`);
  assert.ok(connect);
});

test("ports are given by number or by name", () => {
  const container = aContainer({ ports: [{ name: "web", containerPort: 8080 }] });
  assert.deepEqual([portNumber(80, container), portNumber("web", container), portNumber("90", container)], [80, 8080, 90]);
  assert.throws(() => portNumber("none", container), /couldn't find port: none/);
  assert.throws(() => portNumber("90a", container), /couldn't find port: 90a/);
  for (const port of [-1, 0, 65_536, 70_000, "0"]) assert.throws(() => portNumber(port, container), /invalid port number/);
  assert.equal(portNumber(65_535, container), 65_535);
  const { url, headers } = httpTarget(
    { port: "web", path: "/a b?q=1", scheme: "HTTPS", httpHeaders: [{ name: "X", value: "y" }] },
    container,
    "fd00::1",
  );
  const { href } = httpTarget({ port: 80, path: "?q=1" }, container, "127.0.0.1").url;
  assert.equal(href, "http://127.0.0.1/?q=1");
  assert.deepEqual([url.href, [...headers]], ["https://[fd00::1]:8080/a%20b?q=1", [["x", ["y"]]]]);
});

async function running(runtime: FakeRuntime): Promise<string> {
  runtime.addImage("i");
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "p" } }, "");
  const id = await runtime.createContainer(sandbox, { metadata: { name: "main" }, image: { image: "i" } }, {});
  await runtime.startContainer(id);
  return id;
}

test("an exec probe fails on a non-zero exit code and at its timeout", async () => {
  const runtime = newFakeRuntime(newFakeClock());
  const id = await running(runtime);
  runtime.onExec = () => ({ stdout: Buffer.from("out "), stderr: Buffer.from("err"), exitCode: 1 });
  assert.deepEqual(await probeExec(runtime, id, ["x"], 1), { result: "failure", output: "out err" });
  runtime.onExec = () => {
    throw new RuntimeError("DeadlineExceeded", "context deadline exceeded");
  };
  assert.deepEqual(await probeExec(runtime, id, ["x", "y"], 1), { result: "failure", output: 'command "x y" timed out' });
  for (const details of ["command timed out", "timeout 1s exceeded"]) {
    runtime.onExec = () => {
      throw new RuntimeError("Unknown", details);
    };
    assert.deepEqual(await probeExec(runtime, id, ["x"], 1), { result: "failure", output: 'command "x" timed out' });
  }
  runtime.onExec = () => ({ stdout: Buffer.alloc(10_000, "x"), stderr: Buffer.alloc(10_000, "y"), exitCode: 0 });
  assert.deepEqual(await probeExec(runtime, id, ["x"], 1), { result: "success", output: "x".repeat(10_000) + "y".repeat(240) });
  runtime.onExec = () => {
    throw new RuntimeError("Unknown", "broken");
  };
  await assert.rejects(probeExec(runtime, id, ["x"], 1), /broken/);
});

test("a gRPC service is healthy if it reports SERVING; each call has a new connection", async (t) => {
  const requests: string[] = [];
  let reply = [8, 1];
  const server = await startGrpcServer(t, (stream, headers, request) => {
    requests.push(`${headers[":path"]} ${headers["user-agent"]?.split(" ")[0]} ${request.toString("latin1")}`);
    if (reply.length === 0) answerRaw(stream, Buffer.alloc(0), { "grpc-status": "12", "grpc-message": "unknown service" });
    else answer(stream, Buffer.from(reply));
  });
  const probe = (service: string) => probeGrpc("127.0.0.1", server.port, service, 60_000);
  assert.deepEqual(await probe(""), { result: "success", output: "service healthy" });
  for (const { bytes, output } of [
    { bytes: [26, 1, 0x78, 8, 2], output: 'service unhealthy (responded with "NOT_SERVING")' }, // after a field it does not know
    { bytes: [8, 3], output: 'service unhealthy (responded with "SERVICE_UNKNOWN")' },
    { bytes: [8, 4], output: 'service unhealthy (responded with "4")' },
    { bytes: [26, 0], output: 'service unhealthy (responded with "UNKNOWN")' },
    { bytes: [], output: 'service unhealthy (responded with "unknown service")' },
  ]) {
    reply = bytes;
    assert.deepEqual(await probe("db"), { result: "failure", output });
  }
  const call = "/grpc.health.v1.Health/Check kube-probe/1.23";
  assert.deepEqual(requests, [`${call} `, ...Array.from({ length: 5 }, () => `${call} \n\x02db`)]);
  await waitFor(() => server.sessions.size === 0, { what: "the connections to be closed" });
});

test("a connection that is not established within the timeout is a failure", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const port = await listening(t, createTcpServer());
  const outcome = probeTcp("127.0.0.1", port, 1_000);
  t.mock.timers.tick(1_000); // in the turn in which it begins
  assert.deepEqual(await outcome, { result: "failure", output: `dial tcp 127.0.0.1:${port}: i/o timeout` });
});

test("a TCP probe that has connected leaves no timer", async (t) => {
  const port = await listening(t, createTcpServer());
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  assert.deepEqual(await probeTcp("127.0.0.1", port, 60_000), { result: "success", output: "" });
  assert.equal(timers(), before);
});

test("a gRPC probe of an IPv6 address puts it in brackets", async () => {
  const { output } = await probeGrpc("::1", 1, "", 60_000);
  assert.match(output, /^service unhealthy \(responded with ".*(?:ECONNREFUSED|EADDRNOTAVAIL) ::1:1/);
});

test("an HTTP hook has 30 s, and an answer of any code is a success", async (t) => {
  const limits: number[] = [];
  t.mock.method(AbortSignal, "timeout", (ms: number) => {
    limits.push(ms);
    return new AbortController().signal;
  });
  const { url } = await httpServer(t);
  const runHook = newHookRunner(newFakeRuntime(newFakeClock()));
  const httpGet = { path: "/400", port: Number(url("/").port) };
  await runHook({ pod: aNodePod(), container: aContainer(), containerId: "c", podIp: "127.0.0.1", handler: { httpGet } });
  assert.deepEqual(limits, [30_000]);
});

test("an HTTP hook without an answer ends after its time", async (t) => {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => void sockets.push(socket));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const port = await listening(t, server);
  const call = { pod: aNodePod(), container: aContainer(), containerId: "", podIp: "127.0.0.1" };
  const hook = newHookRunner(newFakeRuntime(newFakeClock()), 20)({ ...call, handler: { httpGet: { port } } });
  let failure: Error | undefined;
  void hook.catch((err: Error) => {
    failure = err;
  });
  await waitFor(() => failure !== undefined, { what: "the end of the hook" });
});

test("the error of a failed hook says how it failed", async () => {
  const runtime = newFakeRuntime(newFakeClock());
  const id = await running(runtime);
  const runHook = newHookRunner(runtime);
  const limits: number[] = [];
  const { execSync } = runtime;
  runtime.execSync = (containerId, command, timeoutSeconds) => {
    limits.push(timeoutSeconds);
    return execSync(containerId, command, timeoutSeconds);
  };
  const call = { pod: aNodePod(), container: aContainer(), containerId: id, podIp: "127.0.0.1" };
  await runHook({ ...call, handler: { exec: { command: ["ok"] } } });
  runtime.onExec = () => ({ stdout: Buffer.from("oops"), stderr: Buffer.alloc(0), exitCode: 3 });
  await assert.rejects(runHook({ ...call, handler: { exec: { command: ["a", "b"] } } }), (err: Error & { output?: string }) => {
    assert.deepEqual([err.message, err.output], ["command 'a b' exited with 3: ", "oops"]);
    return true;
  });
  runtime.onExec = () => ({ stdout: Buffer.from("out"), stderr: Buffer.from("err"), exitCode: 3 });
  await assert.rejects(runHook({ ...call, handler: { exec: { command: ["x"] } } }), {
    message: "command 'x' exited with 3: err",
    output: "outerr",
  });
  runtime.onExec = () => ({ stdout: Buffer.alloc(1e6, "o"), stderr: Buffer.alloc(1e6, "e"), exitCode: 3 });
  await assert.rejects(runHook({ ...call, handler: { exec: { command: ["loud"] } } }), (err: Error & { output?: string }) => {
    assert.ok(err.message.length < 11_000 && err.output?.length === 10_240, "a flood is cut");
    return true;
  });
  await assert.rejects(runHook({ ...call, handler: {} }), /invalid handler/);
  assert.deepEqual(limits, [0, 0, 0, 0], "a command may take as long as it wants");
});

/** A Pod with one probed container; `exitCode` is the exit code of the probe command. */
async function probed(kind: ProbeKind, spec: Partial<Probe>, other: Partial<Record<`${ProbeKind}Probe`, Probe>> = {}) {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const id = await running(runtime);
  const control = { exitCode: 0, runs: 0, started: true };
  runtime.onExec = () => {
    control.runs++;
    return { stdout: Buffer.from("said"), stderr: Buffer.alloc(0), exitCode: control.exitCode };
  };
  const probe: Probe = {
    exec: { command: ["check"] },
    periodSeconds: 10,
    failureThreshold: 3,
    successThreshold: 1,
    timeoutSeconds: 1,
    ...spec,
  };
  const pod = aNodePod({ containers: [aContainer({ [`${kind}Probe`]: probe, ...other })] });
  const startedAt = clock.now();
  const containers = { current: id as string | undefined };
  const events: string[] = [];
  const changes: string[] = [];
  const manager = new ProbeManager({
    runtime,
    clock,
    log: discardLogger,
    event: (_, container, type, reason, message) => void events.push(`${type} ${reason} ${container?.name}: ${message}`),
    statusOf: (): PodStatus => ({
      phase: "Running",
      podIP: "127.0.0.1",
      containerStatuses:
        containers.current === undefined
          ? []
          : ([
              {
                name: "main",
                containerID: `containerd://${containers.current}`,
                started: control.started,
                state: { running: { startedAt: formatTime(startedAt) } },
              },
            ] as NonNullable<PodStatus["containerStatuses"]>),
    }),
    onChange: (uid) => void changes.push(uid),
    grpcEnabled: false,
  });
  manager.add(pod);
  return { clock, manager, control, id, events, changes, containers, pod, runtime };
}

test("a container is live until its probe has failed three times; then it is not probed until it was replaced", async () => {
  const { clock, manager, control, id, events, changes } = await probed("liveness", {});
  await clock.advance(100);
  assert.deepEqual([manager.results.liveness(id), control.runs], ["success", 1]);
  control.exitCode = 1;
  await clock.advance(20_000);
  assert.equal(manager.results.liveness(id), "success", "two failures are not enough");
  await clock.advance(10_000);
  assert.equal(manager.results.liveness(id), "failure");
  assert.deepEqual(changes, ["uid-1"]);
  assert.equal(events.at(-1), "Warning Unhealthy main: Liveness probe failed: said");
  const runs = control.runs;
  await clock.advance(60_000);
  assert.equal(control.runs, runs);
});

test("a container's readiness follows its probe", async () => {
  const { clock, manager, control, id } = await probed("readiness", {
    successThreshold: 2,
    failureThreshold: 1,
    periodSeconds: 1,
  });
  await clock.advance(100);
  assert.equal(manager.results.readiness(id), "failure");
  await clock.advance(1_000);
  assert.equal(manager.results.readiness(id), "success");
  control.exitCode = 1;
  await clock.advance(1_000);
  assert.equal(manager.results.readiness(id), "failure");
});

test("a probe waits its initial delay", async () => {
  const { clock, control } = await probed("liveness", { initialDelaySeconds: 30 });
  await clock.advance(29_000);
  assert.equal(control.runs, 0);
  await clock.advance(3_000);
  assert.equal(control.runs, 1);
});

test("other probes start after the startup probe has succeeded, which then stops", async () => {
  const startupProbe: Probe = { exec: { command: ["up"] }, periodSeconds: 1, failureThreshold: 30 };
  const { clock, manager, control, id } = await probed("liveness", { periodSeconds: 1 }, { startupProbe });
  control.started = false;
  control.exitCode = 1;
  await clock.advance(5_000);
  assert.deepEqual([manager.results.startup(id), manager.results.liveness(id)], ["unknown", "success"]);
  const before = control.runs;
  assert.ok(before >= 4 && before <= 6, `only the startup probe ran: ${before}`);
  control.exitCode = 0;
  await clock.advance(1_000);
  assert.equal(manager.results.startup(id), "success");
  control.started = true;
  control.runs = 0;
  await clock.advance(5_000);
  assert.ok(control.runs >= 4 && control.runs <= 6, `only the liveness probe runs: ${control.runs}`);
});

test("probe results and counts restart with a new container", async () => {
  const { clock, manager, control, id, containers, runtime } = await probed("liveness", {
    failureThreshold: 1,
    periodSeconds: 1,
  });
  control.exitCode = 1;
  await clock.advance(100);
  assert.equal(manager.results.liveness(id), "failure");
  control.exitCode = 0;
  const next = await running(runtime);
  containers.current = next;
  await clock.advance(2_000);
  assert.deepEqual([manager.results.liveness(id), manager.results.liveness(next)], [undefined, "success"]);
});

test("a probe that could not be run three times is logged and does not change the result", async () => {
  const { clock, manager, id, events, runtime } = await probed("liveness", { failureThreshold: 1 });
  runtime.onExec = () => {
    throw new RuntimeError("Unknown", "broken");
  };
  await clock.advance(100);
  assert.equal(manager.results.liveness(id), "success");
  assert.deepEqual(events, ["Warning Unhealthy main: Liveness probe errored: rpc error: code = Unknown desc = broken"]);
});

test("probes do not restart containers of a terminating pod", async () => {
  const { clock, manager, control } = await probed("liveness", { periodSeconds: 1 });
  await clock.advance(100);
  manager.stopLivenessAndStartup("uid-1");
  const { runs } = control;
  await clock.advance(10_000);
  assert.equal(control.runs, runs);
  assert.equal(manager.results.isProbed("liveness", "uid-1", "main"), false);
});

test("an IPv6 address is dialed, and is in brackets in what is reported", async (t) => {
  const listener = createTcpServer();
  await new Promise<void>((resolve) => listener.listen(0, "::1", resolve));
  t.after(() => listener.close());
  assert.deepEqual(await probeTcp("::1", (listener.address() as AddressInfo).port, 60_000), { result: "success", output: "" });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const outcome = probeTcp("fd00::1", 80, 1_000);
  t.mock.timers.tick(1_000);
  assert.deepEqual(await outcome, { result: "failure", output: "dial tcp [fd00::1]:80: i/o timeout" });
});

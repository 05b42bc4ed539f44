import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type TestPair, testPair } from "@coxswain/apimachinery/testing/tls";
import { startTimeOf } from "./process-identity.ts";
import { failedChecks, notReadyReason } from "./readiness.ts";
import { servicePartsOf } from "./service-parts.ts";
import { defaultChoices, newSettings, type Settings } from "./settings.ts";
import { writeState } from "./supervisor-state.ts";
import { processNames } from "./up.ts";

for (const { page, want } of [
  {
    page: "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed\n",
    want: "etcd, poststarthook/rbac/bootstrap-roles failed",
  },
  { page: "internal server error: it is not leading\n", want: "internal server error: it is not leading" },
  { page: "first\n\nlast\n\n", want: "last" },
  { page: "", want: "" },
])
  test(`the summary of a health page has the failed checks, else the last line (${JSON.stringify(want)})`, () => {
    assert.equal(failedChecks(page), want);
  });

/** A cluster in a folder, all of whose processes run (they are this one), as far as its state file says. */
async function newCluster(t: TestContext): Promise<{ settings: Settings; pair: TestPair }> {
  const state = mkdtempSync(join(tmpdir(), "cox-ready-"));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  for (const name of ["run", "pki/etcd"]) mkdirSync(join(state, name), { recursive: true });
  const settings = { ...newSettings("/clone", "default", state, defaultChoices(), {}, 0), run: join(state, "run") };
  const running = {
    phase: "running",
    since: 0,
    pid: process.pid,
    startTime: startTimeOf(process.pid)!,
    restarts: 0,
    quickEnds: 0,
  } as const;
  writeState(settings, {
    supervisor: { pid: 1, startTime: "1", since: 0, version: "" },
    processes: Object.fromEntries(
      processNames(settings).map((name) => [name, { spec: { name, command: name, args: [] }, state: running }]),
    ),
  });
  const pair = await testPair();
  writeFileSync(join(state, "pki", "ca.crt"), pair.ca);
  writeFileSync(join(state, "pki", "etcd", "ca.crt"), pair.ca);
  writeFileSync(join(state, "pki", "etcd", "healthcheck-client.crt"), pair.cert);
  writeFileSync(join(state, "pki", "etcd", "healthcheck-client.key"), pair.key);
  return { settings, pair };
}

type Answer = (path: string) => [status: number, body: string];

/** @returns the port of a server; over HTTP without a pair. With `clients` it wants certificates of the pair's authority. */
async function serving(t: TestContext, answer: Answer, pair?: TestPair, clients = false): Promise<number> {
  const listener: RequestListener = ({ url = "" }, response) => {
    const [status, body] = answer(url);
    response.writeHead(status).end(body);
  };
  const server =
    pair === undefined
      ? createHttpServer(listener)
      : createHttpsServer({ ...pair, ...(clients && { requestCert: true, rejectUnauthorized: true }) }, listener);
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port; // cast: it listens on a port
}

const okAt =
  (...paths: string[]): Answer =>
  (path) =>
    paths.includes(path) ? [200, "ok"] : [404, "no such page"];

test("each process is asked at its own port and page", async (t) => {
  const { settings, pair } = await newCluster(t);
  const parts = servicePartsOf(settings).map((part) => `/healthz/${part}`);
  const other = await testPair("self-signed");
  const ports = {
    ...settings.ports,
    etcd: await serving(t, (path) => [200, path === "/health" ? '{"health":"true"}' : "{}"], pair, true),
    apiserver: await serving(t, okAt("/readyz"), pair),
    controllerManager: await serving(t, okAt("/healthz"), other),
    scheduler: await serving(t, okAt("/healthz"), other),
    kubeletHealthz: await serving(t, okAt("/healthz")),
    services: await serving(t, okAt(...parts), other),
  };
  const names = processNames(settings).filter((name) => name !== "containerd");
  const all = async (given: Settings) =>
    Object.fromEntries(await Promise.all(names.map(async (name) => [name, await notReadyReason(given, name)])));
  const ready = Object.fromEntries(names.map((name) => [name, undefined]));
  assert.deepEqual(await all({ ...settings, ports }), ready);
  // Each port answers for its own process alone.
  const closed = await serving(t, okAt());
  for (const [port, process] of [
    ["controllerManager", "kube-controller-manager"],
    ["scheduler", "kube-scheduler"],
    ["kubeletHealthz", "kubelet"],
  ] as const) {
    const { [process]: reason, ...rest } = await all({ ...settings, ports: { ...ports, [port]: closed } });
    assert.equal(typeof reason, "string", process);
    assert.ok(
      Object.values(rest).every((each) => each === undefined),
      process,
    );
  }
  assert.equal(await notReadyReason(settings, "containerd"), "there is no socket yet");
});

test("what is not ready is said on one line: the failed checks, the status, or why there is no answer", async (t) => {
  const { settings, pair } = await newCluster(t);
  const parts = servicePartsOf(settings);
  const reasonOf = (name: string, port: keyof Settings["ports"], number: number): Promise<string | undefined> =>
    notReadyReason({ ...settings, ports: { ...settings.ports, [port]: number } }, name);
  const at = (answer: Answer, own: TestPair | undefined = pair, clients = false) => serving(t, answer, own, clients);

  const failing = await at(() => [500, "[+]ping ok\n[-]etcd failed: reason withheld\n"]);
  assert.equal(await reasonOf("kube-apiserver", "apiserver", failing), "/readyz answers 500: etcd failed");
  assert.equal(await reasonOf("kube-apiserver", "apiserver", await at(() => [302, ""])), "/readyz answers 302: ");
  const stranger = await serving(t, okAt("/readyz"), await testPair("stranger"));
  assert.match((await reasonOf("kube-apiserver", "apiserver", stranger)) ?? "", /certificate|self-signed/);
  for (const [status, body] of [
    [503, '{"health":"true"}'],
    [404, '{"health":"true"}'],
    [200, '{"health":"false"}'],
  ] as const)
    assert.equal(await reasonOf("etcd", "etcd", await at(() => [status, `${body}\n`], pair, true)), `/health: ${body}`);
  const last = parts.at(-1);
  const services = await at((path) => (path === `/healthz/${last}` ? [500, "no address"] : [200, "ok"]));
  assert.equal(await reasonOf("coxswain-services", "services", services), `/healthz/${last} answers 500: no address`);
  const server = createHttpServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo; // cast: it listens on a port
  await new Promise((resolve) => server.close(resolve));
  assert.match((await reasonOf("kubelet", "kubeletHealthz", port)) ?? "", /ECONNREFUSED/);
  rmSync(join(settings.state, "pki", "ca.crt"));
  assert.match((await reasonOf("kube-apiserver", "apiserver", failing)) ?? "", /ENOENT.*ca\.crt/);
  rmSync(join(settings.state, "run", "supervisor.json"));
  assert.equal(await reasonOf("kube-apiserver", "apiserver", failing), "it does not run");
});

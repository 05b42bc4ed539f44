import assert from "node:assert/strict";
import { createServer } from "node:https";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import type { Transport } from "@coxswain/apimachinery/client/transport";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { namespaces, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { testPair } from "@coxswain/apimachinery/testing/tls";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { CatalogueEntry } from "./catalogue.ts";
import { completeConfig } from "./config.ts";
import type { ControllerContext } from "./controller-context.ts";
import { defineController } from "./define-controller.ts";
import { kubeControllerManager } from "./flags.ts";
import { loadClientConfig, runManager } from "./manager.ts";
import { startJsonServer } from "./testing/json-server.ts";
import { startLeaseApi } from "./testing/lease-api.ts";
import { startSmallApi } from "./testing/small-api.ts";

const minute = 60_000;

/** A manager with a fake clock; `written` counts what a controller wrote into the only namespace. */
async function startManager(t: TestContext, ...argv: string[]) {
  const { host, writes } = await startSmallApi(t);
  const clock = newFakeClock();
  const ending = new AbortController();
  const config = completeConfig(parseFlags(kubeControllerManager.flags, ["--leader-elect=false", ...argv]).values);
  const running = runManager({
    config: { ...config, rootCa: "PEM" },
    clientConfig: { host },
    log: discardLogger,
    clock,
    metrics: newMetricsRegistry(),
    featureGates: newFeatureGates("kube-controller-manager", {}),
    turns: newUnlimitedTurns(),
    signal: ending.signal,
  });
  t.after(async () => {
    ending.abort();
    await running;
  });
  const written = (resource: string): number => writes.filter(({ path }) => path === `/api/v1/namespaces/web/${resource}`).length;
  return { clock, written };
}

test("--min-resync-period: controllers see everything again after between once and twice that", async (t) => {
  t.mock.method(Math, "random", () => 0.5);
  const { clock, written } = await startManager(t, "--controllers=root-ca-cert-publisher", "--min-resync-period=1m");
  await waitFor(() => written("configmaps") === 1, { what: "the first look" });
  await clock.advance(1.5 * minute - 1);
  assert.equal(written("configmaps"), 1);
  await clock.advance(1);
  await waitFor(() => written("configmaps") === 2, { what: "the second look" });
});

test("--controller-start-interval: each controller starts so long after the one before", async (t) => {
  const flags = ["--controllers=serviceaccount,root-ca-cert-publisher", "--controller-start-interval=1m"];
  const { clock, written } = await startManager(t, ...flags);
  const counts = (): number[] => [written("serviceaccounts"), written("configmaps")];
  await waitFor(() => counts().includes(1), { what: "the first controller" });
  await clock.advance(minute - 1);
  assert.deepEqual(counts().toSorted(), [0, 1]);
  await clock.advance(1);
  await waitFor(() => !counts().includes(0), { what: "the second controller" });
});

/** Runs a manager with own controllers and a fake clock. */
async function runOwn(
  t: TestContext,
  clientConfig: ClientConfig,
  controllers: readonly CatalogueEntry[],
  options: { argv?: string[]; log?: Logger; transport?: Transport; decisions?: DecisionLog; turns?: Turns } = {},
) {
  const clock = newFakeClock();
  const ending = new AbortController();
  const metrics = newMetricsRegistry();
  const { argv = [], log = discardLogger, ...replaced } = options;
  const config = completeConfig(parseFlags(kubeControllerManager.flags, argv).values);
  const end = runManager({
    config: {
      ...config,
      controllers: new Set(controllers.map(({ name }) => name)),
      // Long enough that delayed requests on a slow machine do not cost the leader its lease.
      leaderElection: { ...config.leaderElection, leaseDurationMs: 300_000, renewDeadlineMs: 200_000, retryPeriodMs },
    },
    clientConfig,
    log,
    clock,
    metrics,
    featureGates: newFeatureGates("kube-controller-manager", {}),
    turns: newUnlimitedTurns(),
    controllers,
    signal: ending.signal,
    ...replaced,
  });
  t.after(() => ending.abort());
  return { clock, metrics, end, stop: () => ending.abort() };
}

const retryPeriodMs = 20;
const entry = (make: CatalogueEntry["make"], more: Partial<CatalogueEntry> = {}): CatalogueEntry => ({
  ...{ name: "own", user: "own-controller", onByDefault: true, make },
  ...more,
});
const withoutElection = ["--leader-elect=false"];
const mainLock = "kube-controller-manager";
const idle = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

test("a manager that is stopped gives its lease back and ends when its controllers have; each process has another identity", async (t) => {
  const { host, leases } = await startLeaseApi(t);
  const identities: string[] = [];
  for (let i = 0; i < 2; i++) {
    const finish = Promise.withResolvers<void>();
    let isRunning = false;
    const slow = entry(() => ({
      async run() {
        isRunning = true;
        await finish.promise;
      },
    }));
    const { end, stop } = await runOwn(t, { host }, [slow]);
    const holder = () => leases.get(mainLock)?.spec.holderIdentity;
    await waitFor(() => isRunning, { what: "the controller to run" });
    identities.push(holder() ?? "");
    let ended: unknown;
    void end.then((how) => {
      ended = how;
    });
    stop();
    await waitFor(() => !holder(), { what: "the lease to be given back" });
    assert.equal(ended, undefined);
    finish.resolve();
    assert.equal(await end, "stopped");
  }
  for (const identity of identities) assert.match(identity, /^.+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.notEqual(identities[0], identities[1]);
});

test("a manager that loses its lease stops its controllers and says so", async (t) => {
  const { host, hold } = await startLeaseApi(t);
  let state = "";
  const own = entry(() => ({
    async run(signal) {
      state = "running";
      await idle(signal);
      state = "ended";
    },
  }));
  const { clock, end } = await runOwn(t, { host }, [own]);
  let how: unknown;
  void end.then((value) => {
    how = value;
  });
  await waitFor(() => state === "running", { what: "the controller to run" });
  hold(mainLock, "somebody");
  await waitFor(
    async () => {
      await clock.advance(retryPeriodMs);
      return how;
    },
    { what: "the manager to end" },
  );
  assert.deepEqual([how, state], ["leadership-lost", "ended"]);
});

for (const { name, argv } of [
  { name: "without leader election the manager fails", argv: withoutElection },
  { name: "as the leader the manager fails for good", argv: [] },
]) {
  test(`beside a server that is not healthy for 10 s no controller is made, and ${name}`, async (t) => {
    const api = await startLeaseApi(t);
    api.isHealthy = false;
    let made = 0;
    const own = entry(() => {
      made++;
      return { run: idle };
    });
    const fatal: string[] = [];
    const log: Logger = {
      ...discardLogger,
      named: () => log,
      fatal: (message, err) => fatal.push(`${message}: ${err}`) as never,
    };
    const { clock, end } = await runOwn(t, { host: api.host }, [own], { argv, log });
    end.catch((err: unknown) => fatal.push(`rejected: ${err}`));
    await waitFor(
      async () => {
        await clock.advance(1_000);
        return fatal.length > 0;
      },
      { what: "the failure" },
    );
    assert.match(
      fatal[0] ?? "",
      /^(controllers failed|rejected): Error: error building controller context: failed to wait for apiserver being healthy/,
    );
    assert.equal(fatal[0]?.startsWith("rejected"), argv.length > 0);
    assert.equal(made, 0);
  });
}

test("the election begins when the server is ready", async (t) => {
  const paths = new Set<string>();
  let requests = 0;
  const host = await startJsonServer(t, ({ url, send }) => {
    paths.add(url.pathname);
    requests++;
    send(503, {});
  });
  const { clock, end, stop } = await runOwn(t, { host }, [entry(() => ({ run: idle }))]);
  const isAsked = async (): Promise<boolean> => {
    await clock.advance(2_000);
    return requests > 3;
  };
  await waitFor(isAsked, { what: "requests" });
  assert.deepEqual([...paths], ["/readyz"]);
  stop();
  assert.equal(await end, "stopped");
});

test("a manager that has ended leaves no connections, and starts no controller that was to start later", async (t) => {
  let closed = 0;
  const started: string[] = [];
  const transport: Transport = {
    request: async () => ({ status: 200, headers: {}, body: Readable.from([Buffer.from("{}")]) }),
    certificateFault: () => undefined,
    reconnect() {},
    close: () => void closed++,
  };
  const named = (name: string) =>
    entry(
      () => ({
        async run(signal) {
          started.push(name);
          await idle(signal);
        },
      }),
      { name },
    );
  const argv = [...withoutElection, "--controller-start-interval=1m"];
  const { end, stop } = await runOwn(t, { host: "http://127.0.0.1:1" }, [named("one"), named("two")], { argv, transport });
  await waitFor(() => started.length === 1, { what: "the first controller" });
  assert.equal(closed, 0);
  stop();
  assert.equal(await end, "stopped");
  assert.deepEqual([started, closed], [["one"], 1]);
});

/** Starts one controller and returns its context. */
async function contextOf(t: TestContext, host: string, more: Partial<CatalogueEntry> = {}, argv: string[] = []) {
  const made = Promise.withResolvers<ControllerContext>();
  const own = entry((ctx) => {
    made.resolve(ctx);
    return { run: idle };
  }, more);
  const manager = await runOwn(t, { host }, [own], { argv: [...withoutElection, ...argv] });
  return { ...manager, ctx: await made.promise };
}

test("events have the controller's component as their source, or its user; those of a part the part's name", async (t) => {
  const node = { apiVersion: "v1", kind: "Node", name: "n" };
  for (const [component, want] of [
    ["own-component", ["own-component", "part"]],
    [undefined, ["own-controller", "part"]],
  ] as const) {
    const { host, events } = await startLeaseApi(t);
    const { ctx } = await contextOf(t, host, { ...(component !== undefined && { component }) });
    ctx.recorder.event(node, "Normal", "A", "one");
    await ctx.recorder.flush();
    ctx.recorderOf("part").event(node, "Normal", "B", "two");
    await waitFor(() => events.length === 2, { what: "both events" });
    assert.deepEqual(
      events.map(({ source }) => source.component),
      want,
    );
  }
});

test("a controller has a multiple of the flags' rate and burst for itself, and informers have no limit", async (t) => {
  const { host } = await startLeaseApi(t);
  const argv = ["--kube-api-qps=1", "--kube-api-burst=1"];
  const { ctx, clock } = await contextOf(t, host, { rate: { qps: 2, burst: 3 } }, argv);
  const signal = AbortSignal.timeout(60_000);
  let answered = 0;
  for (let i = 0; i < 5; i++) void ctx.client.list(pods, {}, { signal }).then(() => answered++);
  await waitFor(() => answered === 3, { what: "the burst" });
  for (const ref of [nodes, namespaces, pods]) await ctx.informers.for(ref).waitForSync(signal);
  for (let i = 0; i < 8; i++) await ctx.informers.client.list(pods, {}, { signal });
  assert.equal(answered, 3, "the fourth waits for its token");
  await clock.advance(499);
  assert.equal(answered, 3);
  await clock.advance(1);
  await waitFor(() => answered === 4, { what: "the fourth" });
  await clock.advance(500);
  await waitFor(() => answered === 5, { what: "the fifth" });
});

test("work queues and failing handlers of a controller are counted", async (t) => {
  const { host } = await startSmallApi(t);
  const own = entry((ctx) => {
    const informer = ctx.informers.for(namespaces);
    informer.addHandler({
      added() {
        throw new Error("injected");
      },
    });
    const queue = defineController(ctx, { name: "own_queue", sources: [], reconcile: async () => ({}) });
    queue.enqueue("a");
    return queue;
  });
  const { metrics } = await runOwn(t, { host }, [own], { argv: withoutElection });
  const counted = /coxswain_informer_handler_failures_total\{resource="namespaces"\} 1\n/;
  await waitFor(async () => counted.test(await metrics.render()), { what: "the failure to be counted" });
  assert.match(await metrics.render(), /workqueue_adds_total\{name="own_queue"\} 1\n/);
});

test("--use-service-account-credentials: a controller that needs the manager's rights asks for no token", async (t) => {
  const asked: string[] = [];
  const host = await startJsonServer(t, ({ method, url, send }) => {
    asked.push(`${method} ${url.pathname}`);
    send(200, { metadata: { resourceVersion: "1" }, items: [] });
  });
  const { ctx } = await contextOf(t, host, { withManagersRights: true }, ["--use-service-account-credentials"]);
  await ctx.client.list(pods, {}, { signal: AbortSignal.timeout(60_000) });
  assert.ok(asked.includes("GET /api/v1/pods"), String(asked));
  assert.deepEqual(
    asked.filter((request) => request.includes("serviceaccounts")),
    [],
  );
});

test("--use-service-account-credentials: a controller's own connections trust the same authority, under the same name", async (t) => {
  const { cert, key, ca } = await testPair();
  const seen = new Set<string>();
  const server = createServer({ cert, key }, ({ method, url, headers, socket }, response) => {
    const { servername } = socket as TLSSocket;
    seen.add(`${method} ${url?.split("?")[0]} ${headers.authorization} for ${servername}`);
    const status = { token: "own", expirationTimestamp: "2032-01-01T00:00:00Z" };
    response.end(JSON.stringify(method === "POST" ? { status } : { metadata: { resourceVersion: "1" }, items: [] }));
  });
  const host = `https://127.0.0.1:${await listening(t, server)}`;
  const made = Promise.withResolvers<ControllerContext>();
  const own = entry((ctx) => {
    made.resolve(ctx);
    return { run: idle };
  });
  const argv = [...withoutElection, "--use-service-account-credentials"];
  await runOwn(t, { host, ca, serverName: "localhost", token: "manager" }, [own], { argv });
  await (await made.promise).client.list(pods, {}, { signal: AbortSignal.timeout(60_000) });
  assert.ok(seen.has("GET /api/v1/pods Bearer own for localhost"), [...seen].join());
});

test("with a log of decisions the manager watches for questions about them, without one it does not", async (t) => {
  for (const isKept of [true, false]) {
    const watched = new Set<string>();
    const host = await startJsonServer(t, ({ send }) => send(200, { metadata: { resourceVersion: "1" }, items: [] }), {
      onWatch: ({ pathname }) => watched.add(pathname),
    });
    const decisions = new DecisionLog({ component: "kube-controller-manager", clock: newFakeClock() });
    const own = entry(({ informers }) => {
      informers.for(namespaces);
      return { run: idle };
    });
    await runOwn(t, { host }, [own], { argv: withoutElection, ...(isKept && { decisions }) });
    await waitFor(() => watched.size === (isKept ? 2 : 1) && watched.has("/api/v1/namespaces"), { what: "the watches" });
  }
});

test("under two locks the questions about decisions are watched once", async (t) => {
  const { host, leases, watched } = await startLeaseApi(t);
  const decisions = new DecisionLog({ component: "kube-controller-manager", clock: newFakeClock() });
  const own = ["own", "service"].map((name) =>
    entry(
      ({ informers }) => {
        informers.for(namespaces);
        return { run: idle };
      },
      { name },
    ),
  );
  await runOwn(t, { host }, own, { argv: ["--enable-leader-migration"], decisions });
  const count = (isOfNamespaces: boolean): number =>
    watched.filter((path) => (path === "/api/v1/namespaces") === isOfNamespaces).length;
  await waitFor(() => count(true) === 2, { what: "the watches of both" });
  assert.deepEqual([[...leases.keys()].toSorted(), count(false)], [["cloud-provider-extraction-migration", mainLock], 1]);
});

test("controllers get the objects of a list in turns", async (t) => {
  const items = Array.from({ length: 20 }, (_, i) => ({ metadata: { name: `n${i}`, uid: `u${i}`, resourceVersion: "1" } }));
  const host = await startJsonServer(t, ({ send }) => send(200, { metadata: { resourceVersion: "1" }, items }));
  let now = 0;
  let [inIteration, most, seen] = [0, 0, 0];
  const made = Promise.withResolvers<ControllerContext>();
  const own = entry((ctx) => {
    made.resolve(ctx);
    return { run: idle };
  });
  await runOwn(t, { host }, [own], { argv: withoutElection, turns: new Turns(() => now) });
  const informer = (await made.promise).informers.for(nodes);
  informer.addHandler({
    added() {
      now += 10; // more than a slice
      seen++;
      most = Math.max(most, ++inIteration);
    },
  });
  const iterate = (): void => {
    inIteration = 0;
    if (seen < 20) setImmediate(iterate);
  };
  iterate();
  await informer.waitForSync(AbortSignal.timeout(60_000));
  assert.deepEqual([seen, most <= 2], [20, true], `${most} in one iteration`);
});

test("controllers get objects without managedFields", async (t) => {
  const managed = { name: "web", uid: "u", resourceVersion: "1", managedFields: [{ manager: "x" }] };
  const host = await startJsonServer(t, ({ send }) =>
    send(200, { metadata: { resourceVersion: "1" }, items: [{ metadata: managed }] }),
  );
  const { ctx } = await contextOf(t, host);
  const informer = ctx.informers.for(namespaces);
  await informer.waitForSync(AbortSignal.timeout(60_000));
  assert.deepEqual(Object.keys(informer.lister.get("web")?.metadata ?? {}).toSorted(), ["name", "resourceVersion", "uid"]);
});

test("the client has the content type of the flag; a kubeconfig that cannot be read is an error of the configuration", async () => {
  const contentType = "application/json";
  const loaded = await loadClientConfig({ kubeconfig: "", master: "http://127.0.0.1:1", contentType });
  assert.equal(loaded.contentType, contentType);
  assert.match(loaded.userAgent ?? "", /^kube-controller-manager\//);
  const missing = loadClientConfig({ kubeconfig: "/nonexistent/kubeconfig", master: "", contentType });
  await assert.rejects(
    missing,
    (err) => err instanceof ConfigError && /unable to load the client configuration: /.test(err.message),
  );
});

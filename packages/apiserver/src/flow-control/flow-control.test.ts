import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { defaultLevels, defaultSchemas, isMandatory } from "../bootstrap/flow-schemas.ts";
import { newRequestMetrics } from "../filters/metrics.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { isLongRunning, parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { FlowControlMetrics } from "./metrics.ts";
import type { FlowSchema, PriorityLevel } from "./plan.ts";
import { newFlowControl, priorityAndFairness } from "./priority-and-fairness.ts";
import { newReadWriteLoad } from "./read-write-load.ts";

const level = (name: string, queueLengthLimit?: number): PriorityLevel => ({
  metadata: { name, uid: `uid-of-${name}` },
  spec: {
    type: "Limited",
    limited: {
      assuredConcurrencyShares: 1,
      limitResponse:
        queueLengthLimit === undefined
          ? { type: "Reject" }
          : { type: "Queue", queuing: { queues: 1, handSize: 1, queueLengthLimit } },
    },
  },
});
const schema = (name: string, levelName: string, user: string, by?: "ByUser" | "ByNamespace"): FlowSchema => ({
  metadata: { name, uid: `uid-of-${name}` },
  spec: {
    matchingPrecedence: 100,
    priorityLevelConfiguration: { name: levelName },
    ...(by && { distinguisherMethod: { type: by } }),
    rules: [
      {
        subjects: [{ kind: "User", user: { name: user } }],
        resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true }],
      },
    ],
  },
});

/** @param concurrency total of all levels. The catch-all level has 5 shares, a level made by `level` has 1 */
function aFlowControl(concurrency = 12) {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const flowControl = newFlowControl({
    mandatory: { levels: defaultLevels.filter(isMandatory), schemas: defaultSchemas.filter(isMandatory) },
    limits: { concurrency, requestWaitLimitMs: 15_000 },
    clock,
    metrics: new FlowControlMetrics(registry, clock),
  });
  const classify = (user: string, path = "/api/v1/namespaces/web/pods") =>
    flowControl.flowOf({ info: parseRequestInfo("GET", path), user: { name: user, groups: [] } });
  const levels = () => [...flowControl.levels()].map(({ plan, quiescing }) => `${plan.name}${quiescing ? " quiescing" : ""}`);
  const start = (user: string) => {
    const { schema: name, queues, counted } = classify(user);
    const classified = { info: parseRequestInfo("GET", "/"), user: { name: user, groups: [] }, receivedMs: 0 };
    const work = { initialSeats: 1, finalSeats: 0, additionalMs: 0 };
    return queues?.start({ schema: name, flow: user, work, counted, requested: classified });
  };
  return { flowControl, clock, registry, classify, levels, start };
}

test("a request is of the first schema that matches, and its flow is distinguished by user, by namespace or by nothing", () => {
  const { flowControl, classify } = aFlowControl();
  flowControl.configure({
    levels: [level("own")],
    schemas: [
      schema("by-user", "own", "joe", "ByUser"),
      schema("by-namespace", "own", "ann", "ByNamespace"),
      schema("one", "own", "bob"),
    ],
  });
  const flow = (user: string) => {
    const { schema: name, schemaUid, levelUid, distinguisher } = classify(user);
    const classified = { info: parseRequestInfo("GET", "/api/v1/namespaces/web/pods"), user: { name: user, groups: [] } };
    return [name, schemaUid, levelUid, distinguisher(classified)];
  };
  assert.deepEqual(flow("joe"), ["by-user", "uid-of-by-user", "uid-of-own", "joe"]);
  assert.deepEqual(flow("ann"), ["by-namespace", "uid-of-by-namespace", "uid-of-own", "web"]);
  assert.deepEqual(flow("bob"), ["one", "uid-of-one", "uid-of-own", ""]);
  assert.equal(classify("nobody").schema, "catch-all");
});

test("a deleted level with running requests stays until the last has finished; an idle one is removed at once", () => {
  const { flowControl, levels, classify, start } = aFlowControl();
  const wanted = { levels: [level("idle"), level("busy")], schemas: [schema("s", "busy", "joe")] };
  flowControl.configure(wanted);
  assert.deepEqual(levels(), ["busy", "catch-all", "exempt", "idle"]);
  const [first, second] = [start("joe"), start("joe")];
  flowControl.configure({ levels: [], schemas: wanted.schemas });
  assert.deepEqual(levels(), ["busy quiescing", "catch-all", "exempt"]);
  // The deleted level keeps one of the six shares.
  assert.equal([...flowControl.levels()].find(({ plan }) => plan.name === "catch-all")?.plan.queueSet?.concurrencyLimit, 10);
  assert.equal(classify("joe").schema, "catch-all");
  first?.finish();
  assert.deepEqual(levels(), ["busy quiescing", "catch-all", "exempt"]);
  second?.finish();
  assert.deepEqual(levels(), ["catch-all", "exempt"]);
  assert.equal([...flowControl.levels()].find(({ plan }) => plan.name === "catch-all")?.plan.queueSet?.concurrencyLimit, 12);
});

test("a level that comes back while it is at work keeps its requests and is not removed after them", () => {
  const { flowControl, levels, classify, start } = aFlowControl();
  const wanted = { levels: [level("busy")], schemas: [schema("s", "busy", "joe")] };
  flowControl.configure(wanted);
  const ticket = start("joe");
  const { queues } = classify("joe");
  flowControl.configure({ levels: [], schemas: [] });
  flowControl.configure(wanted);
  assert.deepEqual(levels(), ["busy", "catch-all", "exempt"]);
  assert.equal(classify("joe").queues, queues);
  ticket?.finish();
  assert.deepEqual(levels(), ["busy", "catch-all", "exempt"]);
  assert.equal(classify("joe").schema, "s");
});

test("a level that is gone is sampled no more, one that stays is", async () => {
  const { flowControl, clock, registry } = aFlowControl();
  const samples = async (name: string): Promise<number> => {
    const line = `apiserver_flowcontrol_priority_level_seat_count_samples_count{priority_level="${name}"} `;
    return Number(
      (await registry.render())
        .split("\n")
        .find((one) => one.startsWith(line))
        ?.slice(line.length),
    );
  };
  flowControl.configure({ levels: [level("stays"), level("goes"), level("exempted")], schemas: [] });
  await clock.advance(100);
  const exempted: PriorityLevel = { metadata: { name: "exempted" }, spec: { type: "Exempt" } };
  flowControl.configure({ levels: [level("stays"), exempted], schemas: [] });
  await clock.advance(100);
  assert.deepEqual([await samples("stays"), await samples("goes"), await samples("exempted")], [200, 100, 100]);
});

/** A filter over one level with one seat and a queue of `queueLengthLimit`; every request is joe's. */
function aFilter(queueLengthLimit: number | undefined) {
  const { flowControl, clock, registry } = aFlowControl(6);
  flowControl.configure({ levels: [level("own", queueLengthLimit)], schemas: [schema("s", "own", "joe")] });
  const metrics = newRequestMetrics(newMetricsRegistry());
  const load = newReadWriteLoad(registry, clock);
  const refused: string[] = [];
  const told = ({ info }: ServerRequest, name: string) => refused.push(`${info.verb} of ${name}`);
  const filter = priorityAndFairness({ flowControl, storedObjects: () => 0, clock, metrics, load, refused: told });
  const send = (method: string, path: string, handler: (request: ServerRequest) => Promise<void>, signal?: AbortSignal) => {
    const exchange = new LoopbackExchange({ method, path, headers: {}, ...(signal && { signal }) });
    Object.defineProperty(exchange, "bodyIsReceived", { value: method === "GET" });
    const info = parseRequestInfo(method, path);
    const request = new ServerRequest(exchange, info, 0, isLongRunning(info));
    request.user = { name: "joe", groups: [] };
    return { exchange, request, done: Promise.resolve(filter(request, handler)) };
  };
  const [own] = [...flowControl.levels()].filter(({ plan }) => plan.name === "own");
  const gauges = () => [metrics.inFlight, metrics.inQueue].map((gauge) => gauge.labels("readOnly").value);
  const dropped = () => metrics.droppedRequests.labels("mutating").value;
  return { send, gauges, dropped, clock, registry, metrics, refused, queues: own?.queues, flow: flowControl };
}

const pods = "/api/v1/namespaces/web/pods";
const answer = async (request: ServerRequest): Promise<void> => void request.exchange.respond(200, {});

test("a handler that fails gives its seat back, and the next in the queue runs", async () => {
  const { send, gauges, queues } = aFilter(2);
  const failure = Promise.withResolvers<void>();
  const first = send("GET", pods, () => failure.promise);
  const second = send("GET", pods, answer);
  await settle();
  assert.deepEqual([gauges(), queues?.executing, queues?.waiting], [[1, 1], 1, 1]);
  failure.reject(new Error("broken"));
  await assert.rejects(first.done, /broken/);
  await second.done;
  assert.equal(second.exchange.status, 200);
  assert.deepEqual([gauges(), queues?.idle], [[0, 0], true]);
});

for (const when of ["before it waits", "while it waits"]) {
  test(`a client that disconnects ${when} leaves the queue; its handler never runs`, async () => {
    const { send, gauges, queues } = aFilter(2);
    const hold = Promise.withResolvers<void>();
    const first = send("GET", pods, () => hold.promise);
    const client = new AbortController();
    if (when === "before it waits") client.abort();
    let ran = false;
    const second = send(
      "GET",
      pods,
      async () => {
        ran = true;
      },
      client.signal,
    );
    await settle();
    if (when === "while it waits") {
      assert.deepEqual([gauges(), queues?.waiting], [[1, 1], 1]);
      client.abort();
    }
    await settle();
    assert.deepEqual([gauges(), queues?.waiting, second.exchange.status], [[1, 0], 0, 429]);
    await second.done;
    hold.resolve();
    await first.done;
    assert.deepEqual([gauges(), queues?.idle, ran], [[0, 0], true, false]);
  });
}

test("a request that gets no seat again after its body has arrived is counted as dropped", async () => {
  const { send, gauges, dropped, refused, clock, queues } = aFilter(undefined);
  const [body, hold] = [Promise.withResolvers<Buffer>(), Promise.withResolvers<void>()];
  const first = send("POST", pods, async (request) => void (await request.receive?.(body.promise)));
  await clock.advance(50);
  assert.equal(queues?.executing, 0);
  const second = send("GET", pods, () => hold.promise);
  body.resolve(Buffer.alloc(0));
  await assert.rejects(first.done, { code: 429 });
  assert.deepEqual([dropped(), refused], [1, ["create of s"]]);
  hold.resolve();
  await second.done;
  assert.deepEqual([gauges(), queues?.idle], [[0, 0], true]);
});

test("a request that waited for its turn leaves no listener at its signal", async () => {
  const { send } = aFilter(2);
  const hold = Promise.withResolvers<void>();
  const first = send("GET", pods, () => hold.promise);
  const second = send("GET", pods, answer);
  const listeners = (): number => getEventListeners(second.request.signal, "abort").length;
  const whileWaiting = listeners();
  hold.resolve();
  await Promise.all([first.done, second.done]);
  assert.equal(listeners(), whileWaiting - 1);
});

test("a watch gives its seat back once: when it began or was not read, or when it ended before", async () => {
  const { send, queues, gauges } = aFilter(undefined);
  const executing = (): number => queues?.executing ?? Number.NaN;
  for (const [give, left] of [
    [(r: ServerRequest) => r.watchStarted?.(), 0],
    [(r: ServerRequest) => r.exchange.onUnread?.(), 0],
    [() => {}, 1],
  ] as const) {
    const over = Promise.withResolvers<void>();
    const began = send("GET", `${pods}?watch=1`, async () => over.promise);
    assert.equal(executing(), 1);
    assert.deepEqual(gauges(), [1, 0], "a watch is a read");
    assert.equal(send("GET", pods, answer).exchange.status, 429);
    give(began.request);
    assert.equal(executing(), left);
    if (left === 0) {
      // A second call must not release the seat of the next request.
      const next = send("GET", pods, () => over.promise);
      give(began.request);
      assert.equal(executing(), 1);
      over.resolve();
      await next.done;
    }
    over.resolve();
    await began.done;
    assert.equal(queues?.idle, true);
  }
});

test("an answer that only waits for its reader holds no seat", async () => {
  const { send, queues, gauges } = aFilter(undefined);
  const read = Promise.withResolvers<void>();
  const first = send("GET", pods, () => read.promise);
  first.request.exchange.onUnread?.();
  assert.equal(queues?.idle, true);
  first.request.exchange.onUnread?.();
  read.resolve();
  await first.done;
  assert.deepEqual(gauges(), [0, 0], "it is counted once");
});

test("a watch counts for the writes that it sees until it ends, also by failing", async () => {
  const { send, registry } = aFilter(undefined);
  const seen = async (): Promise<string | undefined> =>
    /^apiserver_flowcontrol_watch_count_samples_sum\{[^}]*flow_schema="s"\} (\d+)$/m.exec(await registry.render())?.[1];
  const over = Promise.withResolvers<void>();
  const watch = send("GET", `${pods}?watch=1`, async (request) => {
    request.watchStarted?.();
    await over.promise;
  });
  await send("POST", pods, answer).done;
  assert.equal(await seen(), "1");
  await send("GET", pods, answer).done;
  assert.equal(await seen(), "1", "a read has no watchers");
  over.reject(new Error("broken"));
  await assert.rejects(watch.done, /broken/);
  await send("POST", pods, answer).done;
  assert.equal(await seen(), "1");
});

test("a request that is neither short nor a watch is not limited", async () => {
  const { send, queues } = aFilter(undefined);
  const hold = Promise.withResolvers<void>();
  const first = send("GET", pods, () => hold.promise);
  const exec = send("POST", `${pods}/a/exec`, answer);
  await exec.done;
  assert.deepEqual([exec.exchange.status, queues?.executing], [200, 1]);
  hold.resolve();
  await first.done;
});

for (const waits of [false, true]) {
  test(`a request whose time was over before its body arrived ${waits ? "and a seat was free " : ""}keeps no seat`, async () => {
    const { send, gauges, clock, queues } = aFilter(1);
    const [body, hold] = [Promise.withResolvers<Buffer>(), Promise.withResolvers<void>()];
    let handled = false;
    const first = send("POST", pods, async (request) => {
      await request.receive?.(body.promise);
      handled = true;
    });
    first.request.deadlineMs = 1;
    await clock.advance(50);
    const second = waits ? send("GET", pods, () => hold.promise) : undefined;
    first.request.abort(new Error("time is up"));
    body.resolve(Buffer.alloc(0));
    await assert.rejects(first.done, /time is up/);
    hold.resolve();
    await second?.done;
    assert.deepEqual([gauges(), queues?.idle, handled], [[0, 0], true, false]);
    assert.equal(send("GET", pods, answer).exchange.status, 200, "its seat is free");
  });
}

test("a request whose body arrived late holds a seat again, and gives it back once", async () => {
  const { send, clock, queues, metrics } = aFilter(undefined);
  const running = () => metrics.inFlight.labels("mutating").value;
  const [body, work] = [Promise.withResolvers<Buffer>(), Promise.withResolvers<void>()];
  const first = send("POST", pods, async (request) => {
    await request.receive?.(body.promise);
    await work.promise;
  });
  assert.deepEqual([running(), queues?.executing], [1, 1]);
  await clock.advance(50);
  assert.deepEqual([running(), queues?.executing], [0, 0]);
  body.resolve(Buffer.alloc(0));
  await settle();
  assert.deepEqual([running(), queues?.executing], [1, 1]);
  work.resolve();
  await first.done;
  assert.deepEqual([running(), queues?.executing], [0, 0]);
});

test("a request of an exempt level gives no seat away while its body arrives, nor waits for one", async () => {
  const { flow, send, clock, metrics } = aFilter(undefined);
  const exempt: PriorityLevel = { metadata: { name: "own", uid: "uid-of-own" }, spec: { type: "Exempt" } };
  flow.configure({ levels: [exempt], schemas: [schema("s", "own", "joe")] });
  const all = Array.from({ length: 3 }, () => {
    const work = Promise.withResolvers<void>();
    let receive: unknown;
    const sent = send("POST", pods, async (request) => {
      receive = request.receive;
      await work.promise;
    });
    return { ...sent, work, receive: () => receive };
  });
  await clock.advance(1000);
  assert.equal(metrics.inFlight.labels("mutating").value, 3);
  for (const { receive, work } of all) {
    assert.equal(receive(), undefined);
    work.resolve();
  }
  await Promise.all(all.map(({ done }) => done));
});

test("each request names its schema and level, is counted with the time it waited and took, or as refused", async () => {
  const { send, clock, registry, refused } = aFilter(1);
  const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = send("GET", pods, async (request) => {
    await one.promise;
    request.exchange.respond(200, {});
  });
  const second = send("GET", pods, () => two.promise);
  const third = send("GET", pods, answer);
  assert.deepEqual([third.exchange.status, refused], [429, ["list of s"]]);
  await clock.advance(2_000);
  one.resolve();
  await first.done;
  await clock.advance(3_000);
  two.resolve();
  await second.done;
  const { headers } = await first.exchange.response;
  assert.deepEqual(
    [headers["x-kubernetes-pf-flowschema-uid"], headers["x-kubernetes-pf-prioritylevel-uid"]],
    ["uid-of-s", "uid-of-own"],
  );
  const page = await registry.render();
  const value = (name: string, more = ""): string | undefined =>
    new RegExp(`^apiserver_flowcontrol_${name}\\{priority_level="own",flow_schema="s"${more}\\} (.*)$`, "m").exec(page)?.[1];
  const runs = (what: string, is: boolean) => value(`request_wait_duration_seconds_${what}`, `,execute="${is}"`);
  assert.deepEqual([runs("count", true), runs("sum", true), runs("count", false)], ["2", "2", "1"]);
  assert.deepEqual([value("dispatched_requests_total"), value("request_execution_seconds_sum")], ["2", "5"]);
  assert.equal(value("work_estimated_seats_count"), "3");
});

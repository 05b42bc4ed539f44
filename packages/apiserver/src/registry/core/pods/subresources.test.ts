import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
import { bind } from "./binding.ts";
import { newEphemeralContainersStrategy } from "./ephemeral-containers.ts";
import { countDisruption } from "./eviction.ts";
import { logOptions, validateLogOptions } from "./log.ts";
import { splitSchemeNamePort } from "./proxy.ts";

const now = Date.parse("2022-01-01T00:00:00Z");
const aPod = (spec: object = {}, metadata: object = {}): Pod => ({
  metadata: { name: "p", ...metadata },
  spec: { containers: [{ name: "a" }], ...spec },
});
const binding = { metadata: { name: "p", annotations: { who: "me" } }, target: { kind: "Node", name: "n1" } };

test("binding gives a pod its node, annotations and the PodScheduled condition, and leaves the stored one alone", () => {
  const current = aPod();
  const bound = bind(current, binding, now);
  assert.equal(bound.spec.nodeName, "n1");
  assert.deepEqual(bound.metadata.annotations, { who: "me" });
  assert.deepEqual(bound.status?.conditions, [
    { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: "2022-01-01T00:00:00Z" },
  ]);
  assert.equal(current.spec.nodeName, undefined);
});

test("binding takes back that the pod could not be scheduled", () => {
  const current = {
    ...aPod(),
    status: { conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no" }] },
  } as Pod;
  assert.deepEqual(bind(current, binding, now).status?.conditions, [
    { type: "PodScheduled", status: "True", lastTransitionTime: "2022-01-01T00:00:00Z" },
  ]);
});

test("binding keeps the pod's annotations and the time since which it counts as scheduled", () => {
  const scheduled = { type: "PodScheduled", status: "True", lastTransitionTime: "2021-01-01T00:00:00Z" };
  const current = { ...aPod({}, { annotations: { own: "1" } }), status: { conditions: [scheduled] } } as Pod;
  const bound = bind(current, binding, now);
  assert.deepEqual(bound.metadata.annotations, { own: "1", who: "me" });
  assert.deepEqual(bound.status?.conditions, [scheduled]);
});

for (const { name, pod, want } of [
  { name: "has that node already", pod: aPod({ nodeName: "n1" }), want: /pod p is already assigned to node "n1"/ },
  { name: "has a node", pod: aPod({ nodeName: "n2" }), want: /pod p is already assigned to node "n2"/ },
  {
    name: "is being deleted",
    pod: aPod({}, { deletionTimestamp: "2022-01-01T00:00:00Z" }),
    want: /pod p is being deleted, cannot be assigned to a host/,
  },
]) {
  test(`a pod that ${name} is not bound: 409`, () => {
    assert.throws(
      () => bind(pod, binding, now),
      (err: StatusError) => err.code === 409 && want.test(err.message),
    );
  });
}

const aBudget = (status: object): PodDisruptionBudget => ({
  metadata: { name: "b", generation: 1 },
  spec: {},
  status: { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, ...status },
});

test("an eviction takes one disruption and names the pod", () => {
  const next = countDisruption(aBudget({}), "p", now);
  assert.equal(next.status?.disruptionsAllowed, 0);
  assert.deepEqual(next.status?.disruptedPods, { p: "2022-01-01T00:00:00Z" });
});

test("a status of a later generation than the budget's is up to date", () => {
  const next = countDisruption(aBudget({ observedGeneration: 2 }), "p", now);
  assert.equal(next.status?.disruptionsAllowed, 0);
});

test("the last disruption keeps the names before it and says at once that no other is allowed", () => {
  const conditions = [
    { type: "Other", status: "True" },
    { type: "DisruptionAllowed", status: "True", reason: "SufficientPods", lastTransitionTime: "2021-01-01T00:00:00Z" },
  ];
  const status = { disruptedPods: { q: "2021-01-01T00:00:00Z" }, conditions };
  const last = countDisruption(aBudget(status), "p", now).status;
  assert.deepEqual(last?.disruptedPods, { q: "2021-01-01T00:00:00Z", p: "2022-01-01T00:00:00Z" });
  assert.deepEqual(last?.conditions, [
    conditions[0],
    { type: "DisruptionAllowed", status: "False", reason: "InsufficientPods", lastTransitionTime: "2022-01-01T00:00:00Z" },
  ]);
  assert.deepEqual(countDisruption(aBudget({ ...status, disruptionsAllowed: 2 }), "p", now).status?.conditions, conditions);
});

test("a condition that already says so keeps its time, and one of none is not added", () => {
  const conditions = [
    { type: "DisruptionAllowed", status: "False", reason: "Own", lastTransitionTime: "2021-01-01T00:00:00Z" },
    { type: "DisruptionAllowed2", status: "True" },
  ];
  assert.deepEqual(countDisruption(aBudget({ conditions }), "p", now).status?.conditions, conditions);
  assert.equal(countDisruption(aBudget({}), "p", now).status?.conditions, undefined);
});

test("a budget that allows less than nothing forbids an eviction", () => {
  assert.throws(
    () => countDisruption(aBudget({ disruptionsAllowed: -1 }), "p", now),
    (err: StatusError) =>
      err.code === 403 && err.message === 'poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative',
  );
});

test("up to 2,000 evictions may be unconfirmed when another one is requested", () => {
  const unconfirmed = (count: number) =>
    aBudget({ disruptedPods: Object.fromEntries(Array.from({ length: count }, (_, i) => [`q${i}`, "2021-01-01T00:00:00Z"])) });
  assert.equal(Object.keys(countDisruption(unconfirmed(2000), "p", now).status?.disruptedPods ?? {}).length, 2001);
  assert.throws(
    () => countDisruption(unconfirmed(2001), "p", now),
    (err: StatusError) => err.code === 403,
  );
});

for (const { name, status, retry, cause } of [
  {
    name: "none is left",
    status: { disruptionsAllowed: 0 },
    retry: undefined,
    cause: "The disruption budget b needs 1 healthy pods and has 2 currently",
  },
  {
    name: "its status is out of date",
    status: { observedGeneration: 0 },
    retry: 10,
    cause: "The disruption budget b is still being processed by the server.",
  },
]) {
  test(`an eviction is refused with 429 when ${name}`, () => {
    assert.throws(
      () => countDisruption(aBudget(status), "p", now),
      (err: StatusError) => {
        assert.equal(err.code, 429);
        assert.equal(err.message, "Cannot evict pod as it would violate the pod's disruption budget.");
        assert.deepEqual(err.status.details?.causes, [{ reason: "DisruptionBudget", message: cause }]);
        assert.equal(err.status.details?.retryAfterSeconds, retry);
        return true;
      },
    );
  });
}

test("log options say what is wrong with them", () => {
  const of = (query: string) => validateLogOptions(logOptions(new URLSearchParams(query))).map((error) => error.field);
  assert.deepEqual(of("tailLines=5&limitBytes=1&sinceSeconds=1"), []);
  assert.deepEqual(of("tailLines=-1&limitBytes=0&sinceSeconds=0"), ["tailLines", "limitBytes", "sinceSeconds"]);
  for (const seconds of [0, 1]) assert.deepEqual(of(`sinceSeconds=${seconds}&sinceTime=2022-01-01T00:00:00Z`), ["[]"]);
  assert.deepEqual(of("tailLines=0"), []);
  assert.throws(
    () => logOptions(new URLSearchParams("tailLines=x")),
    (err: StatusError) => err.code === 400,
  );
});

test("proxied names carry scheme and port", () => {
  assert.deepEqual(splitSchemeNamePort("pod", "web"), { scheme: "", name: "web", port: "" });
  assert.deepEqual(splitSchemeNamePort("pod", "web:80"), { scheme: "", name: "web", port: "80" });
  assert.deepEqual(splitSchemeNamePort("pod", "https:web:"), { scheme: "https", name: "web", port: "" });
  assert.deepEqual(splitSchemeNamePort("pod", "http:web:a"), { scheme: "http", name: "web", port: "a" });
  for (const id of ["ftp:web:21", "", ":80", "http::80", "http:web:80:", "HTTP:web:80"]) {
    assert.throws(
      () => splitSchemeNamePort("pod", id),
      (err: StatusError) => err.code === 400 && err.message === `invalid pod request "${id}"`,
      id,
    );
  }
});

test("an update of ephemeral containers that names none removes them, and a status that there was not", () => {
  const current = aPod({ ephemeralContainers: [{ name: "debug", image: "i" }] }, { resourceVersion: "9" });
  const next = { ...aPod({}, {}), status: { phase: "Running" } } as Pod;
  newEphemeralContainersStrategy({ allowPrivileged: false }).prepareForUpdate?.(next, current, {} as StrategyContext);
  assert.deepEqual(next, { metadata: { name: "p", resourceVersion: "9" }, spec: { containers: [{ name: "a" }] } });
});

for (const { name, requested, want } of [
  { name: "a version is held to it", requested: "7", want: "7" },
  { name: "none is of the stored object", requested: undefined, want: "9" },
]) {
  test(`an update of ephemeral containers with ${name}, and changes nothing else`, () => {
    const current = {
      ...aPod({ nodeName: "n1" }, { resourceVersion: "9", labels: { a: "b" } }),
      status: { phase: "Running" },
    } as Pod;
    const added = [{ name: "debug", image: "i" }];
    const next = aPod({ nodeName: "n2", ephemeralContainers: added }, { resourceVersion: requested, labels: { c: "d" } });
    newEphemeralContainersStrategy({ allowPrivileged: false }).prepareForUpdate?.(next, current, {} as StrategyContext);
    assert.deepEqual(next, {
      metadata: { name: "p", resourceVersion: want, labels: { a: "b" } },
      spec: { containers: [{ name: "a" }], nodeName: "n1", ephemeralContainers: added },
      status: { phase: "Running" },
    });
  });
}

for (const { text, want } of [
  { text: "+7", want: 7 },
  { text: "-7", want: -7 },
  { text: "007", want: 7 },
  { text: "99999999999999", want: 99_999_999_999_999 },
  { text: "9223372036854775807", want: Number.MAX_SAFE_INTEGER },
  { text: "-9223372036854775808", want: Number.MIN_SAFE_INTEGER },
  { text: "9223372036854775808", want: "value out of range" },
  { text: "-9223372036854775809", want: "value out of range" },
  { text: "", want: "invalid syntax" },
  { text: "+", want: "invalid syntax" },
  { text: "0x1", want: "invalid syntax" },
  { text: "1.0", want: "invalid syntax" },
  { text: " 1", want: "invalid syntax" },
]) {
  test(`numbers of logs: ${JSON.stringify(text)}`, () => {
    for (const name of ["sinceSeconds", "tailLines", "limitBytes"] as const) {
      const parsed = () => logOptions(new URLSearchParams({ [name]: text }))[name];
      if (typeof want === "number") assert.equal(parsed(), want);
      else assert.throws(parsed, { code: 400, message: `strconv.ParseInt: parsing ${JSON.stringify(text)}: ${want}` });
    }
  });
}

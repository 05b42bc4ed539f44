import assert from "node:assert/strict";
import { test } from "node:test";
import { type BindingProgress, bindPod, reserve } from "./binding-cycle.ts";
import { newPodInfo } from "./cache/node-info.ts";
import type { Extender } from "./extenders/extender.ts";
import type { Plugin } from "./framework/extension-points.ts";
import type { Profile } from "./profile.ts";
import { aTestPod } from "./testing/test-cluster.ts";

const points = ["reserve", "permit", "preBind", "bind", "postBind"] as const;
type Point = (typeof points)[number];

/** Two plugins at each point that record their calls; `fails` maps calls, e.g. `preBind second`, to their failure. */
function twoPlugins(fails: Readonly<Record<string, "throw" | "refuse" | "skip">> = {}) {
  const calls: string[] = [];
  const call = (point: string, name: string): { code: "Unschedulable" | "Skip"; reasons: string[] } | undefined => {
    calls.push(`${point} ${name}`);
    const failure = fails[`${point} ${name}`];
    if (failure === "throw") throw new Error(`${point} of ${name}`);
    if (failure === "skip") return { code: "Skip", reasons: [] };
    return failure === undefined ? undefined : { code: "Unschedulable", reasons: [`${name} says no`] };
  };
  const plugins = ["first", "second"].map((name) => ({
    name,
    unreserve: () => void call("unreserve", name),
    ...Object.fromEntries(points.map((point) => [point, () => call(point, name)])),
  }));
  const profile = { at: Object.fromEntries(points.map((point) => [point, plugins])) } as unknown as Profile;
  return { calls, profile };
}

const pod = newPodInfo(aTestPod("web"));
const givenBack = ["unreserve second", "unreserve first"];

for (const { fails, want } of [
  { fails: { "reserve first": "refuse" }, want: ["reserve first", ...givenBack] },
  { fails: { "reserve second": "refuse" }, want: ["reserve first", "reserve second", ...givenBack] },
  { fails: { "reserve second": "throw" }, want: ["reserve first", "reserve second", ...givenBack] },
] as const) {
  test(`${Object.entries(fails)[0]?.join(" → ")}: plugins unreserve in reverse order`, () => {
    const { calls, profile } = twoPlugins(fails);
    assert.throws(() => reserve(profile, new Map(), pod, "a"));
    assert.deepEqual(calls, want);
  });
}

const before: Record<Exclude<Point, "reserve" | "postBind">, readonly string[]> = {
  permit: [],
  preBind: ["permit first", "permit second"],
  bind: ["permit first", "permit second", "preBind first", "preBind second"],
};

for (const point of ["permit", "preBind", "bind"] as const) {
  for (const how of ["refuse", "throw"] as const) {
    for (const which of ["first", "second"] as const) {
      test(`${point} of the ${which} plugin: ${how} ends the binding, and each plugin unreserves once`, async () => {
        const skipped: Record<string, "skip"> = point === "bind" && which === "second" ? { "bind first": "skip" } : {};
        const { calls, profile } = twoPlugins({ ...skipped, [`${point} ${which}`]: how });
        await assert.rejects(
          bindPod(profile, new Map(), pod, "a"),
          how === "throw" ? new RegExp(`${point} of ${which}`) : /says no/,
        );
        const own = which === "first" ? [`${point} first`] : [`${point} first`, `${point} second`];
        assert.deepEqual(calls, [...before[point], ...own, ...givenBack]);
      });
    }
  }
}

test("only the first plugin that does not skip binds; then PostBind runs for both, and nothing is unreserved", async () => {
  const { calls, profile } = twoPlugins();
  assert.deepEqual(await bindPod(profile, new Map(), pod, "a"), []);
  assert.deepEqual(calls, [...before.bind, "bind first", "postBind first", "postBind second"]);
});

test("a binding fails when every bind plugin skips", async () => {
  const { calls, profile } = twoPlugins({ "bind first": "skip", "bind second": "skip" });
  await assert.rejects(bindPod(profile, new Map(), pod, "a"), /bind status: Skip/);
  assert.deepEqual(calls.slice(-2), givenBack);
});

test("a plugin whose Unreserve fails does not prevent that of others, and the first error stays the message", async () => {
  const fails = { "preBind first": "refuse", "unreserve second": "throw" } as const;
  const { calls, profile } = twoPlugins(fails);
  await assert.rejects(bindPod(profile, new Map(), pod, "a"), (err: AggregateError) => {
    assert.match(err.message, /says no/);
    assert.match(String(err.errors[1]), /unreserve of second/);
    return true;
  });
  assert.deepEqual(calls.slice(-2), givenBack);
  const reserving = twoPlugins({ "reserve second": "refuse", "unreserve second": "throw" });
  assert.throws(() => reserve(reserving.profile, new Map(), pod, "a"), /says no/);
  assert.deepEqual(reserving.calls.slice(-2), givenBack);
});

test("a failure in PostBind does not undo the binding", async () => {
  const { calls, profile } = twoPlugins({ "postBind first": "throw" });
  const failures = await bindPod(profile, new Map(), pod, "a");
  assert.deepEqual(failures.map(String), ["Error: postBind of first"]);
  assert.deepEqual(calls.slice(-2), ["postBind first", "postBind second"]);
});

const extenderOf = (binds: boolean, interested: boolean, bind: () => Promise<void>): Extender =>
  ({ name: "x", binds, isInterested: () => interested, bind }) as unknown as Extender;

test("an extender binds instead of plugins if it is a binder and interested; its failure unreserves", async () => {
  let bound = 0;
  const binding = async (): Promise<void> => void bound++;
  const { calls, profile } = twoPlugins();
  const idle = [extenderOf(false, true, binding), extenderOf(true, false, binding)];
  await bindPod(profile, new Map(), pod, "a", idle);
  assert.deepEqual([bound, calls.includes("bind first")], [0, true]);
  const second = twoPlugins();
  await bindPod(second.profile, new Map(), pod, "a", [...idle, extenderOf(true, true, binding)]);
  assert.deepEqual([bound, second.calls.includes("bind first")], [1, false]);
  const third = twoPlugins();
  const failing = extenderOf(true, true, () => Promise.reject(new Error("away")));
  await assert.rejects(bindPod(third.profile, new Map(), pod, "a", [failing]), /binding rejected: away/);
  assert.deepEqual(third.calls.slice(-2), givenBack);
});

test("the progress of a binding names the point and its plugin, and no plugin for Bind", async () => {
  const { profile } = twoPlugins();
  const seen: string[] = [];
  const progress: BindingProgress = { point: "", plugin: "" };
  const watched = (of: readonly Plugin[], point: string): Plugin[] =>
    of.map((plugin) => ({ ...plugin, [point]: () => void seen.push(`${progress.point} ${progress.plugin}`) }));
  const at = { ...profile.at, permit: watched(profile.at.permit, "permit"), bind: watched(profile.at.bind, "bind") };
  await bindPod({ ...profile, at }, new Map(), pod, "a", [], undefined, progress);
  assert.deepEqual(seen, ["Permit first", "Permit second", "Bind "]);
});

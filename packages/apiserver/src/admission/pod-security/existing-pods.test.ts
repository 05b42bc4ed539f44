import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { warningsAbout } from "./existing-pods.ts";

const restricted = { level: "restricted", version: "latest" } as const;
const privileged = { containers: [{ name: "c", image: "i", securityContext: { privileged: true } }] };
const pods = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ metadata: { name: `p${i}` }, spec: privileged })) as never[];

test("a namespace's pods are looked at for a second at most, and others have turns meanwhile", async () => {
  let nowMs = 0;
  let turns = 0;
  let looking = true;
  const takeTurns = (): void => {
    turns++;
    if (looking) setImmediate(takeTurns);
  };
  setImmediate(takeTurns);
  // Each clock read advances the time by 1 ms.
  const warnings = await warningsAbout("web", pods(2000), restricted, () => nowMs++, new Turns(() => nowMs));
  looking = false;
  const [, checked] =
    /^new PodSecurity enforce level only checked against the first (\d+) of 2000 existing pods$/.exec(warnings[0] ?? "") ?? [];
  assert.ok(Number(checked) > 500 && Number(checked) <= 1001);
  assert.ok(turns > 50, `${turns} turns`);
  assert.equal(warnings[1], 'existing pods in namespace "web" violate the new PodSecurity enforce level "restricted:latest"');
  assert.match(
    warnings[2] ?? "",
    new RegExp(`^p0 \\(and ${Number(checked) - 1} other pods\\): privileged, allowPrivilegeEscalation != false`),
  );
});

test("a few pods are checked without a yield", async () => {
  const warnings = await warningsAbout("web", pods(2), restricted, () => 0, new Turns(() => 0));
  assert.deepEqual(warnings.slice(0, 1), [
    'existing pods in namespace "web" violate the new PodSecurity enforce level "restricted:latest"',
  ]);
  assert.match(warnings[1] ?? "", /^p0 \(and 1 other pod\): /);
});

test("of more than 3,000 pods only the first 3,000 are checked", async () => {
  const warnings = await warningsAbout("web", pods(3001), restricted, () => 0, new Turns(() => 0));
  assert.match(warnings[0] ?? "", /only checked against the first 3000 of 3001 existing pods$/);
});

test("one pod of each controller comes first, and each pod without one", async () => {
  const controlled = (name: string, uid: string, more: object = {}) =>
    ({
      metadata: { name, ownerReferences: [{ uid, controller: true, apiVersion: "v1", kind: "X", name: "x" }] },
      spec: { ...privileged, ...more },
    }) as never;
  const [first, second] = pods(2);
  const all = [
    controlled("a1", "a"),
    controlled("a2", "a", { hostNetwork: true }),
    first,
    controlled("b1", "b"),
    second,
  ] as never[];
  let nowMs = 0;
  const now = () => {
    nowMs += 300; // four pods take a second
    return nowMs;
  };
  const warnings = await warningsAbout("web", all, restricted, now, new Turns(() => 0));
  assert.match(warnings[0] ?? "", /first 4 of 5/);
  assert.match(warnings[2] ?? "", /^a1 \(and 3 other pods\)/);
  assert.equal(warnings.length, 3, "the second pod of the controller is the one that is left out");
  const both = (await warningsAbout("web", all.slice(0, 2), restricted, () => 0, new Turns(() => 0))).slice(1);
  assert.deepEqual(
    both.map((text) => text.slice(0, 3)),
    ["a1:", "a2:"],
  );
});

test("the pod that is reached at the end of the second is followed by one more", async () => {
  let nowMs = 0;
  const now = () => {
    nowMs += 250;
    return nowMs;
  };
  const warnings = await warningsAbout("web", pods(6), restricted, now, new Turns(() => 0));
  assert.match(warnings[0] ?? "", /first 5 of 6/);
});

test("pods that violate nothing are looked at for a second at most, too", async () => {
  let nowMs = 0;
  const fine = Array.from({ length: 5 }, (_, i) => ({ metadata: { name: `p${i}` }, spec: { containers: [] } })) as never[];
  const now = () => {
    nowMs += 300;
    return nowMs;
  };
  const baseline = { level: "baseline", version: "latest" } as const;
  const warnings = await warningsAbout("web", fine, baseline, now, new Turns(() => 0));
  assert.deepEqual(warnings, ["new PodSecurity enforce level only checked against the first 4 of 5 existing pods"]);
});

test("pods of one violation are in the order of their names, and violations in that of their texts", async () => {
  const named = (name: string, spec: object) => ({ metadata: { name }, spec }) as never;
  const onHost = { containers: [{ name: "c", image: "i" }], hostNetwork: true };
  const all = [named("d", privileged), named("c", onHost), named("b", privileged), named("a", onHost)];
  const baseline = { level: "baseline", version: "latest" } as const;
  assert.deepEqual((await warningsAbout("web", all, baseline, () => 0, new Turns(() => 0))).slice(1), [
    "a (and 1 other pod): host namespaces",
    "b (and 1 other pod): privileged",
  ]);
});

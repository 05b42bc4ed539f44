import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServicePort as ApiPort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { ProgramError, type RunProgram } from "../host/run-program.ts";
import { needsRoot, newNamespace } from "../testing/namespaces.ts";
import { type Change, rulesOf, startRules } from "../testing/node-network.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { findRefused, isRefusal } from "./refused.ts";

for (const { name, bad } of [
  { name: "none", bad: [] },
  { name: "the first", bad: [0] },
  { name: "the last", bad: [12] },
  { name: "two neighbours in different halves", bad: [5, 6] },
  { name: "all", bad: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] },
]) {
  test(`of 13 changes those that are refused are found: ${name}`, async () => {
    const made: number[] = [];
    let attempts = 0;
    const found = await findRefused([...Array(13).keys()], new Error("as a whole"), async (some) => {
      attempts++;
      const refused = some.filter((one) => bad.includes(one));
      if (refused.length > 0) return new Error(`refused: ${refused.join()}`);
      made.push(...some);
      return undefined;
    });
    assert.deepEqual([...found.keys()], bad);
    for (const [change, reason] of found) assert.equal(reason.message, `refused: ${change}`, "its own reason");
    assert.deepEqual(
      made,
      [...Array(13).keys()].filter((one) => !bad.includes(one)),
    );
    assert.ok(attempts <= Math.max(2, bad.length * 8), String(attempts));
  });
}

test("one of 64 is found by halves", async () => {
  let attempts = 0;
  const found = await findRefused([...Array(64).keys()], new Error("as a whole"), async (some) => {
    attempts++;
    return some.includes(40) ? new Error("refused") : undefined;
  });
  assert.deepEqual([[...found.keys()], attempts], [[40], 12]);
});

test("a single change that is refused is not tried again", async () => {
  const why = new Error("refused");
  const found = await findRefused(["a"], why, () => assert.fail("tried again"));
  assert.deepEqual([...found], [["a", why]]);
});

for (const { message, exitCode, want } of [
  { message: "iptables-restore v1.8.9 (nf_tables): unknown protocol", exitCode: 2, want: true },
  { message: "line 5: RULE_APPEND failed (Invalid argument): rule in chain A", exitCode: 4, want: true },
  { message: "Another app is currently holding the xtables lock; still 5s", exitCode: 4, want: false },
  { message: "killed by SIGTERM", exitCode: undefined, want: false },
]) {
  test(`"${message}" says ${want ? "something" : "nothing"} about the rules`, () =>
    assert.equal(isRefusal(new ProgramError(message, exitCode)), want));
}

/** No check of the kernel's rules, which repeats what was refused. */
const never = 3_600_000;

const good = (i: number, address = `10.77.0.${i + 1}`): Change => [
  aService(`s${i}`, { clusterIP: `10.96.0.${10 + (i % 3)}`, ports: [{ port: 80 + i, protocol: "TCP" }] }),
  aSlice(`s${i}`, [anEndpoint(address, "n1")]),
];
/** No API server accepts this protocol; what iptables refuses after all is not known. */
const bad = (i: number, protocol = "XYZ"): Change => {
  const [service, slice] = good(i) as [Change[0], Change[1] & object];
  const ports = [{ port: 80 + i, protocol }] as unknown as ApiPort[];
  return [
    { ...service, spec: { ...service.spec, ports } },
    { ...slice, ports: [{ name: "", port: 8080, protocol: protocol }] },
  ];
};

test("Services whose rules iptables refuses have none, and the others all of theirs", { skip: needsRoot }, async (t) => {
  const node = await newNamespace(t);
  const other = await newNamespace(t);
  const model = startRules(t, other, never);
  const assertAsModel = async (what: string): Promise<void> => assert.deepEqual(await rulesOf(node), await rulesOf(other), what);
  let restores = 0;
  let lockedFor = 0;
  const run: RunProgram = (command, args, input) => {
    if (command !== "iptables-restore") return node.run(command, args, input);
    restores++;
    if (lockedFor-- > 0) return Promise.reject(new ProgramError("Another app is currently holding the xtables lock", 4));
    return node.run(command, args, input);
  };
  const rules = startRules(t, { ...node, run }, never);
  const refusedNow = async (): Promise<string> =>
    /coxswain_services_refused_services\{family="IPv4"\} (\d+)/.exec(await rules.metrics.render())?.[1] ?? "none";

  await t.test("at the first write, several in the buckets of others", async () => {
    await rules.put(good(0), bad(1), good(2), good(3), bad(4), good(5));
    await model.put(good(0), good(2), good(3), good(5));
    await assertAsModel("two of six");
    assert.deepEqual(rules.refused.map(([key]) => key).toSorted(), ["default/s1", "default/s4"]);
    for (const [, reason] of rules.refused) assert.match(reason, /xyz/i);
    assert.equal(await refusedNow(), "2");
    rules.rules.check();
  });

  await t.test("a change of another Service is one write, without them", async () => {
    const before = restores;
    await rules.put(good(0, "10.77.0.99"));
    await model.put(good(0, "10.77.0.99"));
    assert.equal(restores - before, 1);
    await assertAsModel("after the change");
    assert.equal(rules.refused.length, 2, "reported once");
  });

  await t.test("one that is right now has its rules, and one that became wrong none, in the same write", async () => {
    await rules.put(good(1), bad(2), good(3, "10.77.0.98"));
    await model.put(good(1), good(3, "10.77.0.98"));
    await model.remove("default/s2");
    await assertAsModel("after both");
    assert.deepEqual(rules.refused.map(([key]) => key).slice(2), ["default/s2"]);
    assert.equal(await refusedNow(), "2");
  });

  await t.test("a lock that is held is no fault of a Service", async () => {
    lockedFor = 1;
    rules.set(good(5, "10.77.0.97"), bad(0));
    await model.put(good(5, "10.77.0.97"));
    await model.remove("default/s0");
    await waitFor(async () => (await refusedNow()) === "3");
    await assertAsModel("after the lock");
    assert.deepEqual(rules.refused.map(([key]) => key).slice(3), ["default/s0"]);
  });

  await t.test("one that stays wrong in other ways does not affect the others", async () => {
    const before = restores;
    await rules.put(bad(2, "XYZZY"));
    assert.equal(restores - before, 1, "the attempt alone");
    await assertAsModel("as before");
    assert.match(rules.refused.at(-1)?.[1] ?? "", /xyzzy/i, "the new reason is reported");
  });

  await t.test("chains that another program removed are no fault of a Service", async () => {
    await node.run("iptables", ["-t", "nat", "-F"]);
    await node.run("iptables", ["-t", "nat", "-X"]);
    const before = rules.refused.length;
    await rules.put(good(7), bad(8), good(9));
    await model.put(good(7), good(9));
    const own = async (namespace: typeof other) =>
      Object.entries(await rulesOf(namespace)).filter(([chain]) => chain.startsWith("nat COX-"));
    assert.deepEqual(await own(node), await own(other), "all of them are written again");
    assert.deepEqual(rules.refused.map(([key]) => key).slice(before), ["default/s8"]);
  });

  await t.test("a successor with the same Services comes to the same rules", async (t) => {
    await rules.stop();
    const next = startRules(t, node, never);
    await next.put(...rules.all());
    await assertAsModel("the successor's");
    assert.deepEqual(next.refused.map(([key]) => key).toSorted(), ["default/s0", "default/s2", "default/s4", "default/s8"]);
    await next.put(good(0), good(2), good(4), good(8));
    await model.put(good(0), good(2), good(4), good(8));
    await assertAsModel("all are right");
    await next.stop();
  });
});

test("rules that are refused now are tried again later", { skip: needsRoot }, async (t) => {
  const node = await newNamespace(t);
  let hasModule = false;
  // As without the module xt_recent, which may be loaded later.
  const run: RunProgram = (command, args, input) =>
    command === "iptables-restore" && !hasModule && input?.includes("-m recent")
      ? Promise.reject(new ProgramError("Couldn't load match `recent': No such file or directory", 2))
      : node.run(command, args, input);
  const [service, ...slices] = good(1) as [Change[0], ...Change[1][]];
  const sticky: Change = [{ ...service, spec: { ...service.spec, sessionAffinity: "ClientIP" } }, ...(slices as [])];
  const rules = startRules(t, { ...node, run });
  await rules.put(good(0), sticky);
  assert.deepEqual(
    rules.refused.map(([key]) => key),
    ["default/s1"],
  );
  hasModule = true;
  await waitFor(async () => (await node.run("iptables-save", ["-t", "nat"])).includes("-m recent"));
  assert.match(await rules.metrics.render(), /coxswain_services_refused_services\{family="IPv4"\} 0/);
  assert.equal(rules.refused.length, 1);
});

test("a failure that no Service has caused fails the write, which is retried", { skip: needsRoot }, async (t) => {
  const node = await newNamespace(t);
  let isBroken = true;
  const run: RunProgram = (command, args, input) =>
    command === "iptables-restore" && isBroken
      ? Promise.reject(new ProgramError("iptables-restore: unable to initialize table 'nat'", 3))
      : node.run(command, args, input);
  const rules = startRules(t, { ...node, run });
  rules.set(good(0), good(1));
  await waitFor(() => {
    try {
      rules.rules.check();
    } catch (err) {
      return /unable to initialize/.test((err as Error).message);
    }
    return false;
  });
  assert.deepEqual(rules.refused, []);
  isBroken = false;
  await waitFor(() => rules.syncs() > 0);
  assert.deepEqual(rules.refused, []);
});

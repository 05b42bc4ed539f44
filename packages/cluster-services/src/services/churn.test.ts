/**
 * Many concurrent changes: Services are created and deleted, and the thousand endpoints of one keep changing. The kernel's rules
 * must then equal those that a process writes that starts with the final state.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { ProgramError, type RunProgram } from "../host/run-program.ts";
import { needsRoot, newNamespace } from "../testing/namespaces.ts";
import { type Change, rulesOf, startRules } from "../testing/node-network.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;
const serviceCount = isLong ? 1_000 : 100;
const endpointCount = isLong ? 1_000 : 150;
/** Within a minute in the long form, as fast as possible else. */
const steps = isLong ? 600 : 25;
const stepMs = isLong ? 100 : 5;

function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const podAddress = (i: number): string => `10.77.${(i >> 8) & 255}.${i & 255}`;

test("after many changes and a killed process the kernel has exactly the rules of the last state", {
  skip: needsRoot,
}, async (t) => {
  const random = randomFrom(21);
  const node = await newNamespace(t);
  let writes = 0;
  let failures = 0;
  // The second write fails, and every third after it, as when another program holds the lock.
  const failing: RunProgram = (command, args, input) => {
    if (command === "iptables-restore" && ++writes % 3 === 2) {
      failures++;
      return Promise.reject(new ProgramError("iptables-restore: another app is holding the xtables lock", 4));
    }
    return node.run(command, args, input);
  };
  const small = (i: number): Change => {
    const nodePort = i % 7 === 0 ? { nodePort: 30_000 + i } : {};
    const type = i % 7 === 0 ? "NodePort" : "ClusterIP";
    const ports = [{ port: 80, protocol: "TCP" as const, ...nodePort }];
    const endpoints = Array.from({ length: random(4) }, () => anEndpoint(podAddress(random(2_000)), `n${random(2) + 1}`));
    const sessionAffinity = i % 11 === 0 ? { sessionAffinity: "ClientIP" as const } : {};
    return [
      aService(`s${i}`, { type, clusterIP: `10.96.${1 + (i >> 8)}.${i & 255}`, ports, ...sessionAffinity }),
      aSlice(`s${i}`, endpoints),
    ];
  };
  const present = new Set(Array.from({ length: endpointCount }, (_, i) => i));
  const large = (): Change => [
    aService("large", { clusterIP: "10.96.0.10" }),
    aSlice(
      "large",
      [...present].map((i) => anEndpoint(podAddress(i + 4_096), `n${(i % 3) + 1}`)),
    ),
  ];

  const first = startRules(t, { ...node, run: failing });
  first.set(large());
  for (let step = 0; step < steps; step++) {
    for (let i = 0; i < Math.ceil((2 * serviceCount) / steps); i++) {
      const which = random(serviceCount);
      if (random(2) === 0) first.set(small(which));
      else first.unset(`default/s${which}`);
    }
    const moved = random(endpointCount);
    if (!present.delete(moved)) present.add(moved);
    first.set(large());
    await new Promise((resolve) => setTimeout(resolve, stepMs)); // the rate of the changes
  }
  const ended = performance.now();
  const last = first.all();
  const other = await newNamespace(t);
  const model = startRules(t, other);
  await model.put(...last);
  const want = await rulesOf(other);
  assert.ok(Object.keys(want).length > last.length, "the model has rules");
  assert.ok(failures > 0, "a write has failed");
  await waitFor(async () => JSON.stringify(await rulesOf(node)) === JSON.stringify(want), { timeoutMs: 120_000 }).catch(
    async () => {
      assert.deepEqual(await rulesOf(node), want);
    },
  );
  t.diagnostic(
    `${last.length} Services, ${failures} failed writes; right ${Math.round(performance.now() - ended)} ms after the last change, the model's own start included`,
  );

  // Killed in the middle of changes: the next process finds the rules of one that it knows nothing of.
  for (let i = 0; i < serviceCount; i += 3) first.unset(`default/s${i}`);
  await first.stop();
  const rest = first.all();
  const second = startRules(t, node);
  await second.put(...rest);
  const again = await newNamespace(t);
  await startRules(t, again).put(...rest);
  assert.deepEqual(await rulesOf(node), await rulesOf(again));
});

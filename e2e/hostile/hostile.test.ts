/**
 * Hostile clients, one at a time, against a real API server with a well-behaved client: its latency is bounded, its watch is
 * complete, its lease is renewed in time, and the server's resource usage returns to its previous level afterwards.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../framework/wait-for.ts";
import { startAttacker } from "./attacker-process.ts";
import { startBystander } from "./bystander.ts";
import { cases } from "./cases/index.ts";
import { breaches, type Figures, type Holdings, limits, quantile, trend } from "./limits.ts";
import { newRunQueue } from "./run-queue.ts";
import { startAttackedServer } from "./server.ts";

const isLong = Boolean(process.env["COX_TEST_LONG"]);
const attackMs = isLong ? 20_000 : 400;
/** Runs only cases whose names contain it. */
const chosen = process.env["COX_TEST_HOSTILE"] ?? "";
const chosenCases = cases.filter(({ name }) => name.includes(chosen));
const MB = 2 ** 20;

const skip = !isLong && chosen === "" && "a long form: COX_TEST_LONG=1, or COX_TEST_HOSTILE=<part of a case's name>";

test("a bystander is served while others mean harm", { skip }, async (t) => {
  const server = await startAttackedServer(t);
  const queue = newRunQueue(server.process.pid, server.etcdPid);
  const attacker = await startAttacker(t, server.target);
  const bystander = await startBystander(() => server.client(server.bystanderToken), queue);
  t.after(() => bystander.stop());
  console.log(row("case", "user", "reads", "p99 ms", "longest", "held MB", "resident", "fds", "what came of it"));
  const held: number[] = [];
  let before = await server.holdings();

  for (const { name, user } of chosenCases) {
    await t.test(name, async () => {
      await attacker.setup(name);
      await bystander.seen();
      const counts = await attacker.run(attackMs);
      const seen = await bystander.seen();
      await attacker.cleanup();
      const after = await settled(server.holdings, before);
      held.push(after.heldBytes);
      const end = server.process.end();
      const figures: Figures = { ...seen, serverEnd: end === undefined ? undefined : String(end), before, after };
      const shown = row(
        name,
        user,
        seen.latenciesMs.length,
        quantile(seen.latenciesMs, 0.99).toFixed(0),
        Math.max(0, ...seen.latenciesMs).toFixed(0),
        ((after.heldBytes - before.heldBytes) / MB).toFixed(1),
        (after.residentBytes / MB).toFixed(0),
        after.descriptors - before.descriptors,
        Object.entries(counts)
          .map(([what, times]) => `${what}: ${times}`)
          .join(", "),
      );
      console.log(shown); // printed at once, for runs that are aborted
      for (const breach of breaches(figures)) console.log(`  ${breach}`);
      before = after;
      const found = breaches(figures);
      assert.deepEqual(found, [], `${found.join("; ")}\n${shown}\n${end === undefined ? "" : server.process.log().slice(-2000)}`);
    });
    if (server.process.end() !== undefined) break;
  }
  assert.ok(trend(held) <= limits.moreBytes, `what it holds grows by ${trend(held) / MB} MB from the first cases to the last`);
});

/** Waits until sockets are closed, which takes the server a moment, or until a timeout. */
async function settled(holdings: () => Promise<Holdings>, before: Holdings): Promise<Holdings> {
  let last = await holdings();
  const isBack = async (): Promise<boolean> => {
    last = await holdings();
    return (
      last.descriptors - before.descriptors <= limits.moreDescriptors && last.heldBytes - before.heldBytes <= limits.moreBytes
    );
  };
  await waitFor("what the server holds to be as before", isBack, { timeoutMs: 15_000 }).catch(() => {});
  return last;
}

function row(...cells: readonly (string | number)[]): string {
  const widths = [58, 9, 6, 7, 8, 8, 9, 4];
  return cells.map((cell, i) => (i < 2 ? String(cell).padEnd(widths[i] ?? 0) : String(cell).padStart(widths[i] ?? 0))).join(" ");
}

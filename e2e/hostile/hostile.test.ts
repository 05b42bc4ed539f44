/**
 * Hostile clients, one at a time, against a real API server with a well-behaved client: its latency is bounded, its watch is
 * complete, its lease is renewed in time, and the server's resource usage returns to its previous level afterwards.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../framework/wait-for.ts";
import { startAttacker } from "./attacker-process.ts";
import { startBystander } from "./bystander.ts";
import type { Case } from "./case.ts";
import { cases, everyRun } from "./cases/index.ts";
import { breaches, type Figures, type Holdings, type Limits, limits, quantile, trend, wideLimits } from "./limits.ts";
import { newRunQueue } from "./run-queue.ts";
import { startAttackedServer } from "./server.ts";

const isLong = Boolean(process.env["COX_TEST_LONG"]);
/** A regular expression: runs the cases whose names match. */
const chosen = process.env["COX_TEST_HOSTILE"];
const MB = 2 ** 20;

const form: { readonly chosen: readonly Case[]; readonly attackMs: number; readonly limit: Limits } = {
  chosen: chosen !== undefined ? cases.filter(({ name }) => new RegExp(chosen).test(name)) : isLong ? cases : everyRun,
  attackMs: isLong ? 20_000 : 1000,
  limit: isLong || chosen !== undefined ? limits : wideLimits,
};

test("a bystander is served while others mean harm", async (t) => {
  const { limit, attackMs } = form;
  const server = await startAttackedServer(t);
  const queue = newRunQueue(server.process.pid, server.etcdPid);
  t.after(() => queue.stop());
  const attacker = await startAttacker(t, server.target);
  const bystander = await startBystander(() => server.client(server.bystanderToken), queue);
  t.after(() => bystander.stop());
  console.log(
    row("case", "user", "reads", "turn ms", "p99 ms", "longest", "held MB", "cached", "resident", "fds", "what came of it"),
  );
  const held: number[] = [];
  let before = await server.holdings();

  for (const { name, user } of form.chosen) {
    await t.test(name, async () => {
      await attacker.setup(name);
      await bystander.seen();
      await server.longestTurnMs();
      const counts = await attacker.run(attackMs);
      const seen = await bystander.seen();
      assert.equal(server.process.end(), undefined, `the server has ended:\n${server.process.log().slice(-2000)}`);
      const longestTurnMs = await server.longestTurnMs();
      await attacker.cleanup();
      const after = await settled(server.holdings, before, limit);
      held.push(after.heldBytes);
      const figures: Figures = { ...seen, longestTurnMs, before, after };
      const shown = row(
        name,
        user,
        seen.latenciesMs.length,
        longestTurnMs.toFixed(0),
        quantile(seen.latenciesMs, 0.99).toFixed(0),
        Math.max(0, ...seen.latenciesMs).toFixed(0),
        ((after.heldBytes - before.heldBytes) / MB).toFixed(1),
        (after.cachedBytes / MB).toFixed(0),
        (after.residentBytes / MB).toFixed(0),
        after.descriptors - before.descriptors,
        Object.entries(counts)
          .map(([what, times]) => `${what}: ${times}`)
          .join(", "),
      );
      console.log(shown); // printed at once, for runs that are aborted
      const found = breaches(figures, limit);
      for (const breach of found) console.log(`  ${breach}`);
      before = after;
      assert.deepEqual(found, [], `${found.join("; ")}\n${shown}`);
    });
    if (server.process.end() !== undefined) break;
  }
  assert.ok(trend(held) <= limit.moreBytes, `what it holds grows by ${trend(held) / MB} MB from the first cases to the last`);
});

/** Waits until sockets are closed, which takes the server a moment, or until a timeout. */
async function settled(holdings: () => Promise<Holdings>, before: Holdings, limit: Limits): Promise<Holdings> {
  let last = await holdings();
  const isBack = async (): Promise<boolean> => {
    last = await holdings();
    return last.descriptors - before.descriptors <= limit.moreDescriptors && last.heldBytes - before.heldBytes <= limit.moreBytes;
  };
  await waitFor("what the server holds to be as before", isBack, { timeoutMs: 15_000 }).catch(() => {});
  return last;
}

function row(...cells: readonly (string | number)[]): string {
  const widths = [58, 9, 6, 7, 7, 8, 8, 7, 9, 4];
  return cells.map((cell, i) => (i < 2 ? String(cell).padEnd(widths[i] ?? 0) : String(cell).padStart(widths[i] ?? 0))).join(" ");
}

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cluster } from "../cluster/cluster.ts";
import type { World } from "../world/world.ts";
import { Damage } from "./damage.ts";
import { strikes } from "./strikes.ts";

/** A world whose random numbers are all 0.5, and whose time passes with `pass`. */
function aWorld() {
  const due: (() => void)[] = [];
  const after = (_ms: number, _label: string, act: () => void): void => void due.push(act);
  const world = { random: () => 0.5, after } as unknown as World;
  return { damage: new Damage(world), pass: () => due.splice(0).forEach((act) => void act()) };
}

function anEtcd(revision: number, compacted: number) {
  const calls: string[] = [];
  const compact = (to: number): void => void calls.push(`compact ${to}`);
  const restore = (to: number): void => void calls.push(`restore ${to}`);
  return { calls, cluster: { etcd: { revision, compacted, compact, restore }, servers: [], daemons: [] } as unknown as Cluster };
}

test("answers are lost until the fault's time has passed", () => {
  const { damage, pass } = aWorld();
  strikes["lose-answers"](damage, anEtcd(1, 0).cluster);
  assert.ok(damage.trouble.loseAnswers > 0);
  pass();
  assert.equal(damage.trouble.loseAnswers, 0);
});

test("a restore goes back neither behind the compacted revision nor behind the beginning of the faults", () => {
  for (const { began, compacted, want } of [
    { began: 10, compacted: 0, want: "restore 69" },
    { began: 90, compacted: 0, want: "restore 90" },
    { began: 10, compacted: 95, want: "restore 95" },
  ]) {
    const { damage } = aWorld();
    const { calls, cluster } = anEtcd(100, compacted);
    damage.begin(anEtcd(began, 0).cluster);
    strikes.restore(damage, cluster);
    assert.deepEqual(calls, [want]);
  }
});

test("a compaction that would change nothing is not requested", () => {
  for (const [compacted, want] of [
    [100, []],
    [40, ["compact 100"]],
  ] as const) {
    const { damage } = aWorld();
    const { calls, cluster } = anEtcd(100, compacted);
    damage.begin(cluster);
    strikes.compact(damage, cluster);
    assert.deepEqual(calls, want);
  }
});

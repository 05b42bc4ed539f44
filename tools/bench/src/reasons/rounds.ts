import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { newReplicaSetController } from "@coxswain/controller-manager/controllers/replicaset/controller";
import { newTestContext } from "@coxswain/controller-manager/testing/test-context";
import { startScheduler } from "@coxswain/scheduler/testing/running-scheduler";

/** Work that can be done with and without recording reasons, over an in-memory client of negligible cost. */
export interface Round {
  readonly what: string;
  readonly pods: number;
  /** @returns CPU time of this thread in ms */
  run(isKeeping: boolean): Promise<number>;
}

/** Cleanup functions of what a round has started. */
class Ends {
  readonly #ends: (() => void)[] = [];

  after(end: () => void): void {
    this.#ends.push(end);
  }

  run(): void {
    for (const end of this.#ends) end();
  }
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void; // cast: V8's function, which --expose-gc defines

/** Collects garbage first, so that the garbage of other rounds is not collected in the measured time. */
async function cpuMs(work: () => Promise<void>): Promise<number> {
  collectGarbage();
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

export function schedulingRound(podCount: number): Round {
  const nodeCount = Math.ceil(podCount / 10);
  const isDecided = ({ spec, status }: Pod): boolean => Boolean(spec.nodeName || status?.conditions?.length);
  return {
    pods: podCount,
    what: `${podCount} pods over ${nodeCount} nodes, of which nine of ten fit`,
    async run(isKeeping) {
      const ends = new Ends();
      const { client, names, step, decisions } = await startScheduler(ends, { recording: isKeeping });
      for (let i = 0; i < nodeCount; i++) names.node(`n${i}`, { cpu: "9500m" });
      await step();
      const ms = await cpuMs(async () => {
        for (let i = 0; i < podCount; i++) names.pod(`p${i}`, { cpu: "1" });
        while (!client.objects<Pod>(pods).every(isDecided)) await step();
      });
      assert.equal(decisions.entries, isKeeping ? podCount : 0);
      ends.run();
      return ms;
    },
  };
}

/** A quota rejects the Pods of every tenth ReplicaSet. */
export function replicasRound(setCount: number): Round {
  const replicas = 5;
  const isRefused = (i: number): boolean => i % 10 === 3;
  const setName = (i: number): string => `set-${i}${isRefused(i) ? "-refused" : ""}`;
  const allowed = Array.from({ length: setCount }, (_, i) => i).filter((i) => !isRefused(i)).length;
  return {
    pods: setCount * replicas,
    what: `${setCount} ReplicaSets of ${replicas} pods, of which nine of ten may have them`,
    async run(isKeeping) {
      const ends = new Ends();
      const test = newTestContext(ends);
      const { client, clock } = test;
      const decisions = new DecisionLog({ component: "bench", clock, ...(!isKeeping && { limitBytes: 0 }) });
      client.react("create", "pods", ({ sent }) => {
        const { metadata } = sent as { metadata: { generateName?: string } }; // cast: the object of the create
        if (metadata.generateName?.endsWith("-refused-"))
          throw forbidden(pods, "x", "exceeded quota: mem, used: 4Gi, limited: 4Gi");
        return undefined;
      });
      await test.run(newReplicaSetController({ ...test.ctx, decisions }));
      const ms = await cpuMs(async () => {
        for (let i = 0; i < setCount; i++) client.put(replicaSets, aReplicaSet({ name: setName(i), replicas }));
        while (client.objects(pods).length < allowed * replicas) await clock.advance(10);
        for (let i = 0; i < 10; i++) await clock.advance(100);
      });
      assert.equal(decisions.entries > 0, isKeeping);

      ends.run();
      return ms;
    },
  };
}

/** @returns by how many ms the CPU time of a round with reasons exceeds that of one without, for each pair of rounds */
export async function differencesOf(round: Round, pairs: number): Promise<number[]> {
  const warmUps = 6;
  const differences: number[] = [];
  for (let pair = 0; pair < warmUps + pairs; pair++) {
    // The order alternates, so that neither side benefits from running second.
    const isFirst = pair % 2 === 0;
    const first = await round.run(isFirst);
    const second = await round.run(!isFirst);
    if (pair >= warmUps) differences.push(isFirst ? first - second : second - first);
  }
  return differences;
}

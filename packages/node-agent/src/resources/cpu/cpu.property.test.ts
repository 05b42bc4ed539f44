import assert from "node:assert/strict";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import fc from "@coxswain/apimachinery/testing/fast-check";
import type { NodePod } from "../../pod/pod.ts";
import { aContainer, aNodePod } from "../../testing/builders.ts";
import type { CheckpointFile } from "../checkpoint-file.ts";
import type { Cpu } from "../topology/machine-topology.ts";
import { CpuManager } from "./cpu-manager.ts";
import { both, cpuSet, union } from "./cpu-set.ts";
import { type CpuState, cpuStateForm } from "./cpu-state.ts";
import type { StaticCpus } from "./static-cpus.ts";
import { takeCpus, takeCpusEvenly } from "./take-cpus.ts";

const machines = fc
  .record({
    sockets: fc.integer({ min: 1, max: 3 }),
    nodes: fc.integer({ min: 1, max: 2 }),
    cores: fc.integer({ min: 1, max: 4 }),
    threads: fc.integer({ min: 1, max: 2 }),
  })
  .map(({ sockets, nodes, cores, threads }): Cpu[] => {
    const all = sockets * nodes * cores;
    return Array.from({ length: all * threads }, (_, id) => {
      const core = id % all;
      return { id, core, numaNode: Math.floor(core / cores), socket: Math.floor(core / (cores * nodes)) };
    });
  });

test("exactly the requested number of free CPUs is assigned, or none", () => {
  const seeds = fc.record({ machine: machines, picks: fc.array(fc.boolean()), count: fc.integer({ min: 0, max: 30 }) });
  fc.assert(
    fc.property(seeds, ({ machine, picks, count }) => {
      const free = cpuSet(machine.filter((_, i) => picks[i] ?? true).map(({ id }) => id));
      for (const take of [takeCpus, (...[all, from, n]: Parameters<typeof takeCpus>) => takeCpusEvenly(all, from, n, 1)]) {
        if (count > free.length) {
          assert.throws(() => take(machine, free, count));
          continue;
        }
        const taken = take(machine, free, count);
        assert.deepEqual([taken.length, both(free, taken)], [count, taken]);
      }
    }),
  );
});

type Step = { pod: number; cpus: number } | { gone: number } | "restart";
const steps = fc.array(
  fc.oneof(
    fc.record({ pod: fc.nat(5), cpus: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ gone: fc.nat(5) }),
    fc.constant<Step>("restart"),
  ),
  { maxLength: 25 },
);

test("in any order of starts and exits no CPU is assigned twice or lost, and reserved ones stay shared", () => {
  fc.assert(
    fc.property(machines, steps, (machine, list: Step[]) => {
      let kept: string | undefined;
      // As on disk: the state is encoded and decoded again.
      const file: CheckpointFile<CpuState> = {
        load: () => (kept === undefined ? undefined : cpuStateForm.decode(kept)),
        save: (state) => {
          kept = cpuStateForm.encode(state);
        },
      };
      const settings: StaticCpus = { machine, reserved: [0], options: { wholeCoresOnly: false, acrossNodes: false } };
      const open = () => new CpuManager({ settings, file, path: "/state", log: discardLogger });
      let manager = open();
      const pods = new Map<number, NodePod>();
      for (const step of list) {
        if (step === "restart") manager = open();
        else if ("gone" in step) {
          pods.delete(step.gone);
          manager.release([...pods.values()]);
        } else if (!pods.has(step.pod)) {
          const amounts = { cpu: String(step.cpus), memory: "1Gi" };
          const container = aContainer({ resources: { requests: amounts, limits: amounts } });
          const pod = aNodePod({ containers: [container] }, { uid: `u${step.pod}` });
          try {
            manager.allocate(pod, container, { preferred: false });
            pods.set(step.pod, pod);
            assert.equal(manager.exclusiveCpusOf(pod.metadata.uid, "main").length, step.cpus);
          } catch (err) {
            assert.match((err as Error).message, /not enough cpus available/);
          }
        }
        const own = [...pods.values()].map((pod) => manager.exclusiveCpusOf(pod.metadata.uid, "main"));
        const shared = manager.cpusOf("nobody", "main");
        assert.equal(own.flat().length + shared.length, machine.length);
        assert.equal(union(shared, ...own).length, machine.length);
        assert.ok(shared.includes(0));
      }
    }),
  );
});

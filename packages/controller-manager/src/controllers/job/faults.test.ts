import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Job, JobSpec } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { jobs, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { override } from "@coxswain/apimachinery/testing/override";
import { randomOf } from "@coxswain/apimachinery/testing/random";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { isActive } from "../../pods/pod-state.ts";
import { aJob } from "../../testing/jobs.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newJobController } from "./controller.ts";

/**
 * A client that rejects some writes, loses the responses of others, and delays watch events by up to five seconds.
 * Responses to creates are not lost, because a Pod with a generated name could then not be identified.
 */
function unreliable(client: Client, clock: Clock, random: () => number): Client {
  const faulty =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>, losesAnswers = true) =>
    async (...args: A): Promise<R> => {
      const luck = random();
      if (luck < 0.05) throw serviceUnavailable("refused");
      const answer = await call(...args);
      if (losesAnswers && luck < 0.1) throw serviceUnavailable("the answer is lost");
      return answer;
    };
  async function* watch(...args: Parameters<Client["watch"]>) {
    for await (const event of client.watch(...args)) {
      if (random() < 0.3) await clock.sleep(random() * 5000, args[2].signal);
      yield event;
    }
  }
  const wrapped = {
    watch,
    create: faulty(client.create.bind(client), false),
    update: faulty(client.update.bind(client)),
    patch: faulty(client.patch.bind(client)),
    delete: faulty(client.delete.bind(client)),
  };
  return override(client, wrapped as Partial<Client>);
}

const completions = 30;
const parallelism = 7;
const seeds = process.env["COX_TEST_LONG"] ? 200 : 5;

for (const { name, spec, tracked } of [
  { name: "tracked", spec: {}, tracked: true },
  { name: "indexed", spec: { completionMode: "Indexed" }, tracked: true },
] as { name: string; spec: Partial<JobSpec>; tracked: boolean }[]) {
  for (let seed = 1; seed <= seeds; seed++) {
    test(`a ${name} job counts each pod once through lost writes, watches and controllers: seed ${seed}`, async (t) => {
      const random = randomOf(seed);
      const { client, clock, ctx, signal } = newTestContext(t);
      client.put(jobs, aJob({ spec: { completions, parallelism, backoffLimit: 1000, ...spec }, tracked }));
      const ends = new Map<string, string>();
      const status = () => client.object<Job>(jobs, "default/work")?.status ?? {};
      const isOver = () => status().conditions?.[0]?.type === "Complete";

      let stop = new AbortController();
      const start = (): void => {
        stop = new AbortController();
        const ending = AbortSignal.any([signal, stop.signal]);
        const faulty = unreliable(client, clock, random);
        const informers = newInformerFactory(faulty, { log: discardLogger, clock });
        const controller = newJobController({ ...ctx, client: faulty, informers });
        informers.start(ending);
        void controller.run(ending);
      };
      start();
      await clock.advance(5000);
      await settle(30);
      for (let round = 0; round < 400 && !isOver(); round++) {
        const active = client.objects<Pod>(pods).filter(isActive);
        assert.ok(active.length <= parallelism, `${active.length} at once`);
        for (const pod of active) {
          const luck = random();
          if (luck > 0.4) continue;
          const { uid = "", name: podName = "" } = pod.metadata;
          const phase = luck < 0.3 ? "Succeeded" : "Failed";
          ends.set(uid, phase);
          if (luck < 0.37) client.put(pods, { ...pod, status: { ...pod.status, phase } });
          else await client.delete(pods, { namespace: "default", name: podName }); // a deleted Pod counts as failed too
        }
        const luck = random();
        if (luck < 0.1) client.endWatches();
        else if (luck < 0.15) client.compact();
        else if (luck < 0.2) {
          stop.abort();
          start();
        }
        await settle(5);
        await clock.advance(5000);
        await settle(20);
        const { succeeded = 0, uncountedTerminatedPods: uncounted } = status();
        const so = [...ends.values()].filter((phase) => phase === "Succeeded").length;
        assert.ok(succeeded + (uncounted?.succeeded?.length ?? 0) <= so, "counted what did not happen");
      }
      const count = (wanted: string) => [...ends.values()].filter((phase) => phase === wanted).length;
      assert.ok(isOver(), JSON.stringify(status()));
      assert.equal(status().succeeded, completions);
      assert.equal(count("Succeeded"), completions);
      assert.equal(status().failed ?? 0, count("Failed"));
      if (spec.completionMode === "Indexed") assert.equal(status().completedIndexes, `0-${completions - 1}`);
      await clock.advance(60_000);
      await settle(30);
      assert.deepEqual(
        client.objects<Pod>(pods).filter(({ metadata }) => (metadata.finalizers ?? []).length > 0),
        [],
      );
    });
  }
}

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { bindCompleted } from "@coxswain/apimachinery/volumes/annotations";
import { findBestVolume, isBoundTo, mismatchOf } from "@coxswain/apimachinery/volumes/matching";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aClaim, aVolume } from "../../testing/volumes.ts";
import { newPersistentVolumeBinder } from "./controller.ts";

const names = fc.constantFrom("a", "b", "c");
const sizes = fc.constantFrom("1Gi", "2Gi", "3Gi");
const reserved = fc.option(names, { nil: undefined });

/** Random user actions and network failures. */
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("volume" as const), name: names, size: sizes, claim: reserved }),
    fc.record({ do: fc.constant("claim" as const), name: names, size: sizes, volume: reserved }),
    fc.record({ do: fc.constant("delete claim" as const), name: names }),
    fc.record({ do: fc.constant("delete volume" as const), name: names }),
    fc.record({ do: fc.constant("lose writes" as const), count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ do: fc.constant("wait" as const) }),
  ),
  { minLength: 6, maxLength: 20, size: "max" },
);
type Step = typeof steps extends fc.Arbitrary<(infer T)[]> ? T : never;

let uids = 0;

async function take({ client, clock }: TestContext, step: Step, lose: (count: number) => void): Promise<void> {
  switch (step.do) {
    case "volume":
      if (client.object(persistentVolumes, step.name) !== undefined) break;
      client.put(persistentVolumes, {
        ...aVolume(step.name, {
          capacity: { storage: step.size },
          ...(step.claim && { claimRef: { namespace: "default", name: step.claim } }),
        }),
        metadata: { name: step.name, uid: `volume-${++uids}` },
        status: {},
      });
      break;
    case "claim":
      if (client.object(persistentVolumeClaims, `default/${step.name}`) !== undefined) break;
      client.put(persistentVolumeClaims, {
        ...aClaim({ resources: { requests: { storage: step.size } }, ...(step.volume && { volumeName: step.volume }) }),
        metadata: { namespace: "default", name: step.name, uid: `claim-${++uids}` },
      });
      break;
    case "delete claim":
      client.remove(persistentVolumeClaims, `default/${step.name}`);
      break;
    case "delete volume":
      client.remove(persistentVolumes, step.name);
      break;
    case "lose writes":
      lose(step.count);
      break;
    case "wait":
      await clock.advance(15_000);
  }
  await settle(15);
}

/** Invariants that must hold once the system is idle. */
function check({ client }: TestContext): void {
  const volumes = client.objects<PersistentVolume>(persistentVolumes);
  const claims = client.objects<PersistentVolumeClaim>(persistentVolumeClaims);
  const bound = claims.filter(({ status }) => status?.phase === "Bound");
  assert.equal(new Set(bound.map(({ spec }) => spec.volumeName)).size, bound.length, "one volume serves two claims");
  for (const claim of bound) {
    const volume = volumes.find(({ metadata }) => metadata.name === claim.spec.volumeName);
    assert.equal(volume?.spec.claimRef?.uid, claim.metadata.uid, "the volume knows its claim");
    assert.equal(volume?.status?.phase, "Bound");
    assert.ok(claim.metadata.annotations?.[bindCompleted]);
  }
  for (const { spec, status } of volumes.filter((volume) => volume.status?.phase === "Bound"))
    assert.ok(
      bound.some(({ metadata }) => metadata.uid === spec.claimRef?.uid),
      `a volume is bound without a claim: ${JSON.stringify([spec.claimRef, status])}`,
    );
  for (const claim of claims.filter(({ spec, status }) => status?.phase === "Pending" && !spec.volumeName))
    assert.equal(findBestVolume(claim, volumes, false), undefined, "a claim waits though there is a volume for it");
  for (const claim of claims.filter(({ spec, status }) => status?.phase === "Pending" && spec.volumeName)) {
    const volume = volumes.find(({ metadata }) => metadata.name === claim.spec.volumeName);
    const fits = volume !== undefined && mismatchOf(volume, claim) === undefined;
    const free = volume?.spec.claimRef === undefined || isBoundTo(volume, claim);
    assert.ok(!fits || !free, "a claim waits for a volume that it may have");
  }
}

test("after random user actions and lost writes, claims and volumes converge", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const ended: (() => void)[] = [];
      const context = newTestContext({ after: (fn) => void ended.push(fn) });
      let losing = 0;
      context.client.react("update", "*", () => {
        if (losing === 0) return undefined;
        losing--;
        throw new Error("connection lost");
      });
      await context.run(newPersistentVolumeBinder(context.ctx));
      for (const step of sequence)
        await take(context, step, (count) => {
          losing = count;
        });
      losing = 0;
      for (let looks = 0; looks < 4; looks++) {
        await context.clock.advance(15_000);
        await settle(30);
      }
      check(context);
      for (const end of ended) end();
    }),
    { numRuns: 150 },
  );
});

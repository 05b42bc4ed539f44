import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { strategiesOf } from "../../../testing/kind-rules.ts";
import { prepareUpdate } from "../../../testing/run-strategy.ts";
import type { StrategyContext } from "../../generic/strategy.ts";

const { strategy: statefulSetStrategy } = strategiesOf<StatefulSet>("statefulsets.apps");

const withGates = (...on: string[]): StrategyContext => ({
  ...{ user: undefined, namespace: "default", dryRun: false, now: () => 0, warn: () => {} },
  featureEnabled: (gate) => on.includes(gate),
});
const policy = { whenDeleted: "Delete", whenScaled: "Retain" };
const aSet = (spec: object): StatefulSet => ({ metadata: { name: "s" }, spec }) as unknown as StatefulSet;
const gated = ({ spec }: StatefulSet): unknown[] => [spec?.persistentVolumeClaimRetentionPolicy, spec?.minReadySeconds];

for (const { name, gates, given, had, want } of [
  { name: "new, with both gates off, loses both", gates: [], given: { policy, seconds: 5 }, want: [undefined, undefined] },
  {
    name: "that had neither, with both gates off, gets none",
    gates: [],
    given: { policy, seconds: 5 },
    had: {},
    want: [undefined, undefined],
  },
  {
    name: "that had both, with both gates off, may change them",
    gates: [],
    given: { policy, seconds: 5 },
    had: { policy, seconds: 3 },
    want: [policy, 5],
  },
  {
    name: "that had the policy alone keeps it alone",
    gates: [],
    given: { policy, seconds: 5 },
    had: { policy },
    want: [policy, undefined],
  },
  {
    name: "that had ready seconds alone keeps them alone",
    gates: [],
    given: { policy, seconds: 5 },
    had: { seconds: 3 },
    want: [undefined, 5],
  },
  {
    name: "new, with both gates on, keeps what is given and defaults the rest of the policy",
    gates: ["StatefulSetAutoDeletePVC", "StatefulSetMinReadySeconds"],
    given: { policy: { whenDeleted: "Delete" }, seconds: 5 },
    want: [policy, 5],
  },
  {
    name: "without a policy, with its gate on, retains",
    gates: ["StatefulSetAutoDeletePVC"],
    given: {},
    want: [{ whenDeleted: "Retain", whenScaled: "Retain" }, undefined],
  },
] as { name: string; gates: string[]; given: Fields; had?: Fields; want: unknown[] }[]) {
  test(`a set ${name}`, () => {
    const next = aSet(fieldsOf(given));
    const ctx = withGates(...gates);
    if (had === undefined) statefulSetStrategy.prepareForCreate?.(next, ctx);
    else prepareUpdate(statefulSetStrategy, next, aSet(fieldsOf(had)), ctx);
    assert.deepEqual(gated(next), want);
  });
}

interface Fields {
  readonly policy?: object;
  readonly seconds?: number;
}

function fieldsOf({ policy: retention, seconds }: Fields): object {
  return {
    ...(retention !== undefined && { persistentVolumeClaimRetentionPolicy: retention }),
    ...(seconds !== undefined && { minReadySeconds: seconds }),
  };
}

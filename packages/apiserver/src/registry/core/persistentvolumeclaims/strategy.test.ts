import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolumeClaim, TypedLocalObjectReference } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { strategiesOf } from "../../../testing/kind-rules.ts";
import type { StrategyContext } from "../../generic/strategy.ts";

const { strategy: persistentVolumeClaimStrategy, statusStrategy: persistentVolumeClaimStatusStrategy } =
  strategiesOf<PersistentVolumeClaim>("persistentvolumeclaims");

type Sources = { dataSource?: TypedLocalObjectReference; dataSourceRef?: TypedLocalObjectReference };

const claim: TypedLocalObjectReference = { kind: "PersistentVolumeClaim", name: "a" };
const snapshot: TypedLocalObjectReference = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "a" };
const other: TypedLocalObjectReference = { apiGroup: "example.com", kind: "Image", name: "a" };

for (const { name, any, sources, before, want } of [
  { name: "a claim", any: false, sources: { dataSource: claim }, want: { dataSource: claim } },
  { name: "a snapshot", any: false, sources: { dataSource: snapshot }, want: { dataSource: snapshot } },
  { name: "something else", any: false, sources: { dataSource: other }, want: {} },
  {
    name: "a claim of another group",
    any: false,
    sources: { dataSource: { ...claim, apiGroup: "example.com" } },
    want: {},
  },
  {
    name: "a snapshot of another group",
    any: false,
    sources: { dataSource: { ...snapshot, apiGroup: "example.com" } },
    want: {},
  },
  { name: "the newer form", any: false, sources: { dataSourceRef: claim }, want: {} },
  {
    name: "something else that was there before",
    any: false,
    sources: { dataSource: other },
    before: { dataSource: other },
    want: { dataSource: other },
  },
  {
    name: "an update with something else where nothing was before",
    any: false,
    sources: { dataSource: other },
    before: {},
    want: {},
  },
  {
    name: "something else beside a claim in the newer form",
    any: true,
    sources: { dataSource: other, dataSourceRef: claim },
    want: { dataSource: other, dataSourceRef: claim },
  },
  { name: "a claim", any: true, sources: { dataSource: claim }, want: { dataSource: claim, dataSourceRef: claim } },
  { name: "something else in the older form", any: true, sources: { dataSource: other }, want: {} },
  {
    name: "something else in the newer form",
    any: true,
    sources: { dataSourceRef: other },
    want: { dataSource: other, dataSourceRef: other },
  },
  {
    name: "a claim and something else",
    any: true,
    sources: { dataSource: claim, dataSourceRef: other },
    want: { dataSource: claim, dataSourceRef: other },
  },
  {
    name: "something else twice",
    any: true,
    sources: { dataSource: other, dataSourceRef: other },
    want: { dataSource: other, dataSourceRef: other },
  },
  {
    name: "an older client's update",
    any: true,
    sources: { dataSource: other },
    before: { dataSource: other, dataSourceRef: other },
    want: { dataSource: other, dataSourceRef: other },
  },
] as { name: string; any: boolean; sources: Sources; before?: Sources; want: Sources }[]) {
  test(`with AnyVolumeDataSource=${any} ${name} ${before && want.dataSource ? "stays" : `leaves ${Object.keys(want).join(" and ") || "nothing"}`}`, () => {
    const made = (spec: Sources): PersistentVolumeClaim => ({ metadata: { name: "c" }, spec: { ...spec } });
    const ctx = { featureEnabled: (gate: string) => any && gate === "AnyVolumeDataSource" } as StrategyContext;
    const next = made(sources);
    if (before === undefined) persistentVolumeClaimStrategy.prepareForCreate?.(next, ctx);
    else persistentVolumeClaimStrategy.prepareForUpdate?.(next, made(before), ctx);
    assert.deepEqual(next.spec, want);
  });
}

const grown: PersistentVolumeClaim["status"] = {
  conditions: [{ type: "Resizing", status: "True" }],
  allocatedResources: { storage: "2Gi" },
  resizeStatus: "NodeExpansionPending",
};
for (const { name, on, before = {}, want } of [
  { name: "keeps all fields", on: ["ExpandPersistentVolumes", "RecoverVolumeExpansionFailure"], want: grown },
  { name: "keeps only the conditions", on: ["ExpandPersistentVolumes"], want: { conditions: grown.conditions } },
  { name: "keeps the stored fields, which use each gate", on: [], before: grown, want: grown },
  {
    name: "keeps the conditions and the size, which the stored status has",
    on: ["ExpandPersistentVolumes"],
    before: { allocatedResources: { storage: "1Gi" } },
    want: { conditions: grown.conditions, allocatedResources: grown.allocatedResources },
  },
  {
    name: "keeps size and resize status, but no conditions",
    on: ["RecoverVolumeExpansionFailure"],
    want: { allocatedResources: grown.allocatedResources, resizeStatus: grown.resizeStatus },
  },
] as { name: string; on: string[]; before?: object; want: object }[]) {
  test(`with ${on.join(" and ") || "no gates"} an update of a claim's resize status ${name}`, () => {
    const ctx = { featureEnabled: (gate: string) => on.includes(gate) } as StrategyContext;
    const made = (status: object): PersistentVolumeClaim => ({ metadata: { name: "c" }, spec: {}, status: { ...status } });
    const next = made(grown);
    persistentVolumeClaimStatusStrategy.prepareForUpdate?.(next, made(before), ctx);
    assert.deepEqual(next.status, want);
  });
}

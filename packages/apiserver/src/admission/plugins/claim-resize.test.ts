import assert from "node:assert/strict";
import { test } from "node:test";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { persistentVolumeClaimResize } from "./persistent-volume-claim-resize.ts";

const classes = new Map(
  [true, false, undefined].map((allowVolumeExpansion) => [String(allowVolumeExpansion), { metadata: {}, allowVolumeExpansion }]),
);

function aClaim(storage: string | undefined, storageClassName: string | undefined, phase = "Bound", annotations = {}) {
  const resources = storage === undefined ? {} : { requests: { storage } };
  return { metadata: { name: "c", annotations }, spec: { storageClassName, resources }, status: { phase } };
}
const old = { "volume.beta.kubernetes.io/storage-class": "true" };
const unbound = 'persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded';
const unresizable =
  'persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions ' +
  "the pvc must support resize";

for (const { name, before, next, want = "" } of [
  { name: "grows", before: aClaim("1Gi", "true"), next: aClaim("2Gi", "true") },
  {
    name: "is not bound and stays as large as it is",
    before: aClaim("1Gi", "false", "Pending"),
    next: aClaim("1024Mi", "false"),
  },
  { name: "is not bound and shrinks", before: aClaim("1Gi", "false", "Pending"), next: aClaim("1Mi", "false") },
  { name: "is not bound and grows", before: aClaim("1Gi", "true", "Pending"), next: aClaim("2Gi", "true"), want: unbound },
  {
    name: "says only that it is bound",
    before: aClaim("1Gi", "true", "Lost"),
    next: aClaim("2Gi", "true", "Bound"),
    want: unbound,
  },
  { name: "has said no size before", before: aClaim(undefined, "false"), next: aClaim("1Gi", "false"), want: unresizable },
  { name: "has a class that does not let it", before: aClaim("1Gi", "false"), next: aClaim("2Gi", "false"), want: unresizable },
  {
    name: "has a class that says nothing",
    before: aClaim("1Gi", "undefined"),
    next: aClaim("2Gi", "undefined"),
    want: unresizable,
  },
  { name: "has no class", before: aClaim("1Gi", ""), next: aClaim("2Gi", ""), want: unresizable },
  { name: "has a class that is not there", before: aClaim("1Gi", "gone"), next: aClaim("2Gi", "gone"), want: unresizable },
  { name: "changes its class", before: aClaim("1Gi", "false"), next: aClaim("2Gi", "true"), want: unresizable },
  {
    name: "names its class the old way",
    before: aClaim("1Gi", undefined, "Bound", old),
    next: aClaim("2Gi", undefined, "Bound", old),
  },
  {
    name: "names its class the old way, beside another one",
    before: aClaim("1Gi", "false", "Bound", old),
    next: aClaim("2Gi", "false", "Bound", old),
  },
]) {
  test(`a claim that ${name} is ${want === "" ? "taken" : "refused"}`, async () => {
    const informers = { for: () => ({ synced: true, lister: { get: (key: string) => classes.get(key) } }) };
    const refusal = await persistentVolumeClaimResize({ informers } as unknown as PluginContext)
      .validate?.({
        ...{ operation: "UPDATE", resource: { group: "", version: "v1", resource: "persistentvolumeclaims" }, subresource: "" },
        ...{ name: "c", object: next, oldObject: before },
      } as unknown as AdmissionAttributes<never>)
      .then(
        () => "",
        (err: Error) => err.message,
      );
    assert.equal(refusal, want);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../../process/event-loop/steps.ts";
import type { TypeDescriptor } from "../../schema/descriptor.ts";
import { scheme } from "../../schema/scheme.ts";
import { applyTypeOf } from "./apply-type.ts";
import { paths, setOf } from "./field-set.ts";
import { displayPath } from "./path-element.ts";
import { reconcileInSteps } from "./reconcile.ts";

const pod = applyTypeOf(scheme.kind({ group: "", version: "v1", kind: "Pod" }) as TypeDescriptor); // cast: a known kind
const reconcile = (set: ReturnType<typeof setOf>, spec: object) => atOnce(reconcileInSteps(set, pod, { spec }));

test("of a container that is atomic now the container is owned, not its fields", () => {
  const set = setOf(["f:spec", "f:nodeSelector", "f:disk"], ["f:spec", "f:nodeName"]);
  const found = paths(reconcile(set, { nodeSelector: { disk: "ssd" } })).map(displayPath);
  assert.deepEqual(found, [".spec.nodeName", ".spec.nodeSelector"]);
});

test("of a container that was atomic what it has now is owned; an empty one stays as it is, until it has something", () => {
  const set = setOf(["f:spec", "f:securityContext"]);
  assert.equal(reconcile(set, { securityContext: {} }), set);
  const found = reconcile(set, { securityContext: { runAsUser: 1, seLinuxOptions: { user: "u" } } });
  assert.deepEqual(paths(found).map(displayPath), [
    ".spec.securityContext",
    ".spec.securityContext.runAsUser",
    ".spec.securityContext.seLinuxOptions.user",
  ]);
  assert.equal(reconcile(found, { securityContext: { runAsGroup: 2 } }), found, "it is granular by now");
});

test("a set of known and unknown fields that match the schema is returned as it is", () => {
  const set = setOf(["f:spec", "f:nodeName"], ["f:spec", "f:unknown", "f:x"], ["f:metadata", "f:labels", "f:app"]);
  assert.equal(reconcile(set, { nodeName: "n" }), set);
});

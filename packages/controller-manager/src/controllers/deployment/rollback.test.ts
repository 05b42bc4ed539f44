import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { aDeployment, aReplicaSet } from "@coxswain/apimachinery/testing/builders";
import { revisionAnnotation, rollbackAnnotation } from "./annotations.ts";
import { planRollback, rollbackRevision } from "./rollback.ts";

function setOf(revision: string, image: string): ReplicaSet {
  const set = aReplicaSet({ name: `web-${revision}`, annotations: { [revisionAnnotation]: revision, why: `to ${image}` } });
  set.spec.template = {
    metadata: { labels: { app: "web", "pod-template-hash": revision } },
    spec: { containers: [{ name: "main", image }] },
  };
  return set;
}

const deployment = aDeployment({
  image: "v3",
  annotations: { [rollbackAnnotation]: "0", [revisionAnnotation]: "3", why: "to v3", other: "x" },
});
const sets = [setOf("1", "v1"), setOf("3", "v3"), setOf("2", "v2"), setOf("none", "v0")];

for (const { name, to, image = "v3", existing = sets, event } of [
  {
    name: "to the last revision",
    to: "0",
    image: "v2",
    event: 'Normal DeploymentRollback Rolled back deployment "web" to revision 2',
  },
  { name: "to a revision", to: "1", image: "v1", event: 'Normal DeploymentRollback Rolled back deployment "web" to revision 1' },
  {
    name: "to the present template",
    to: "3",
    event:
      'Warning DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current deployment "web"',
  },
  {
    name: "to an unknown revision",
    to: "9",
    event: "Warning DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to.",
  },
  {
    name: "to the last of one",
    to: "0",
    existing: [setOf("1", "v3")],
    event: "Warning DeploymentRollbackRevisionNotFound Unable to find last revision.",
  },
]) {
  test(`rolls back ${name}`, () => {
    const plan = planRollback(deployment, existing, BigInt(to));
    assert.equal(plan.event.join(" "), event);
    assert.equal(plan.deployment.spec.template.spec?.containers[0]?.image, image);
    assert.deepEqual(plan.deployment.spec.template.metadata?.labels, { app: "web" });
    const kept = image === "v3" ? { why: "to v3", other: "x" } : { why: `to ${image}` };
    assert.deepEqual(plan.deployment.metadata.annotations, { [revisionAnnotation]: "3", ...kept });
  });
}

for (const [text, want] of [
  [undefined, undefined],
  ["", undefined],
  ["x", undefined],
  ["0", 0n],
  ["-1", -1n],
  ["9223372036854775807", 9223372036854775807n],
  ["9223372036854775808", undefined],
] as const) {
  test(`an annotation ${text} asks for revision ${want}`, () => {
    const annotations: Record<string, string> = text === undefined ? {} : { [rollbackAnnotation]: text };
    assert.equal(rollbackRevision(aDeployment({ annotations })), want);
  });
}

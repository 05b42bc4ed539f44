import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ScalePaths } from "./resource.ts";
import { applyScale, scaleOf } from "./scale.ts";

const paths: ScalePaths = {
  version: "autoscaling/v1",
  specReplicas: "spec.replicas",
  statusReplicas: "status.replicas",
  selector: () => "",
};

for (const { name, scale, want } of [
  { name: "three", scale: { spec: { replicas: 3 } }, want: 3 },
  { name: "no number, which is none", scale: { spec: {} }, want: 0 },
  { name: "no wish, which is none", scale: {}, want: 0 },
  {
    name: "less than none",
    scale: { spec: { replicas: -1 } },
    want: 'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
  },
  { name: "another kind", scale: { kind: "Deployment" }, want: "wrong object passed to Scale update: Deployment" },
]) {
  test(`a scale of ${name}`, () => {
    const object = { metadata: { name: "d" }, spec: { replicas: 1 } } as KubeObject & { spec: { replicas: number } };
    const apply = (): KubeObject => applyScale(object, { metadata: { name: "d" }, ...scale }, paths);
    if (typeof want === "string") assert.throws(apply, (err: unknown) => err instanceof StatusError && err.message === want);
    else {
      apply();
      assert.equal(object.spec.replicas, want);
    }
  });
}

test("replicas beyond an int32 are cut off as Go converts them", () => {
  const object = { metadata: {}, spec: { replicas: 2 ** 31 }, status: { replicas: 2n ** 62n + 7n } };
  const want = { spec: { replicas: -(2 ** 31) }, status: { replicas: 7 } };
  assert.partialDeepStrictEqual(scaleOf(object, paths), want);
});

test("a scale is held to the version that it names; without one, only where rules of the object are left to it, to the object's", () => {
  const versionOf = (resourceVersion: string | undefined, leavesRules: boolean) => {
    const object = { metadata: { name: "d", resourceVersion: "7" }, spec: {} } as KubeObject;
    const scale = { metadata: { name: "d", ...(resourceVersion && { resourceVersion }) }, spec: {} } as KubeObject;
    return applyScale(object, scale, { ...paths, ...(leavesRules && { leavesRules }) }).metadata.resourceVersion;
  };
  assert.deepEqual(
    [versionOf("5", false), versionOf("5", true), versionOf(undefined, false), versionOf(undefined, true)],
    ["5", "5", "", "7"],
  );
});

test("a scale without selector has none, one with a selector has it", () => {
  const statusOf = (selector: string) =>
    (scaleOf({ metadata: {} }, { ...paths, selector: () => selector }) as KubeObject & { status: object }).status;
  assert.deepEqual([statusOf(""), statusOf("a=b")], [{ replicas: 0 }, { replicas: 0, selector: "a=b" }]);
});

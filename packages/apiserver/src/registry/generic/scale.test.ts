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

test("a scale has the identity of its object, and nothing else of its metadata", () => {
  const identity = { name: "d", namespace: "n", uid: "u", resourceVersion: "7", creationTimestamp: "2022-01-01T00:00:00Z" };
  const metadata = { ...identity, labels: { a: "b" }, annotations: { a: "b" }, generation: 3, finalizers: ["a/b"] };
  const object = { metadata, spec: { replicas: 3 }, status: { replicas: 2 } };
  assert.deepEqual(scaleOf(object, paths), {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: identity,
    spec: { replicas: 3 },
    status: { replicas: 2 },
  });
  assert.deepEqual(scaleOf({ metadata: {} }, paths), {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: {},
    spec: {},
    status: { replicas: 0 },
  });
});

test("replicas are set where the object has no such field yet, and where something else is in the way", () => {
  const deep = { ...paths, specReplicas: ".spec.a.b" };
  for (const [object, want] of [
    [{ metadata: {} }, { a: { b: 3 } }],
    [
      { metadata: {}, spec: { a: null, c: 1 } },
      { a: { b: 3 }, c: 1 },
    ],
    [{ metadata: {}, spec: { a: "text" } }, { a: { b: 3 } }],
    [{ metadata: {}, spec: { a: { b: 1, c: 2 } } }, { a: { b: 3, c: 2 } }],
  ] as const) {
    const given = structuredClone(object) as KubeObject & { spec?: object };
    applyScale(given, { metadata: {}, spec: { replicas: 3 } } as KubeObject, deep);
    assert.deepEqual(given.spec, want);
  }
});

test("replicas that are no number, or only inherited, are none", () => {
  for (const spec of [{ replicas: "3" }, { replicas: null }, [], "text", null, undefined]) {
    assert.deepEqual((scaleOf({ metadata: {}, spec } as KubeObject, paths) as KubeObject & { spec: object }).spec, {});
  }
  const inherited = { ...paths, specReplicas: ".spec.constructor.length" };
  assert.deepEqual((scaleOf({ metadata: {}, spec: {} } as KubeObject, inherited) as KubeObject & { spec: object }).spec, {});
});

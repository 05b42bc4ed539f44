import assert from "node:assert/strict";
import { test } from "node:test";
import type { StorageVersion } from "../objects/schema/kinds/internal/v1alpha1.ts";
import { statusWith } from "./agree.ts";

const server = (id: string, encodingVersion: string) => ({
  apiServerID: id,
  encodingVersion,
  decodableVersions: [encodingVersion],
});
const [a1, b1, b2] = [server("a", "v1"), server("b", "v1"), server("b", "v2")];
const long = "2020-01-01T00:00:00Z";
const now = "2026-01-01T00:00:00Z";
const set = (at: string) => ({
  type: "AllEncodingVersionsEqual",
  status: "True",
  reason: "CommonEncodingVersionSet",
  message: "Common encoding version set",
  lastTransitionTime: at,
});
const unset = (at: string) => ({
  type: "AllEncodingVersionsEqual",
  status: "False",
  reason: "CommonEncodingVersionUnset",
  message: "Common encoding version unset",
  lastTransitionTime: at,
});
const other = { type: "Mine", status: "True", reason: "r", message: "m" };

for (const { name, before, servers, want } of [
  {
    name: "one server agrees with itself",
    before: {},
    servers: [a1],
    want: { commonEncodingVersion: "v1", conditions: [set(now)] },
  },
  {
    name: "another one of the same version changes nothing",
    before: { commonEncodingVersion: "v1", conditions: [set(long), other] },
    servers: [a1, b1],
    want: { commonEncodingVersion: "v1", conditions: [set(long), other] },
  },
  {
    name: "one of another version ends it",
    before: { commonEncodingVersion: "v1", conditions: [other, set(long)] },
    servers: [a1, b2],
    want: { conditions: [other, unset(now)] },
  },
  {
    name: "they agree again",
    before: { conditions: [unset(long)] },
    servers: [b2],
    want: { commonEncodingVersion: "v2", conditions: [set(now)] },
  },
  {
    name: "another version than before has begun now",
    before: { commonEncodingVersion: "v1", conditions: [set(long)] },
    servers: [b2],
    want: { commonEncodingVersion: "v2", conditions: [set(now)] },
  },
  {
    name: "without servers there is no common version",
    before: { conditions: [unset(long)] },
    servers: [],
    want: { conditions: [unset(long)] },
  },
]) {
  test(`storage versions: ${name}`, () => {
    const current = { metadata: { name: "apps.deployments" }, spec: {}, status: before } as StorageVersion;
    assert.deepEqual(statusWith(current, servers, Date.parse(now)), { storageVersions: servers, ...want });
  });
}

test("the condition has the generation that it was computed for, and a time that it lacks stays absent", () => {
  const { lastTransitionTime: _, ...timeless } = set(long);
  const current = {
    metadata: { name: "apps.deployments", generation: 3 },
    spec: {},
    status: { commonEncodingVersion: "v1", conditions: [timeless] },
  } as StorageVersion;
  assert.deepEqual(statusWith(current, [a1], Date.parse(now)).conditions, [
    { ...timeless, observedGeneration: 3, lastTransitionTime: null },
  ]);
  assert.deepEqual(statusWith({ ...current, status: {} }, [a1], Date.parse(now)).conditions, [
    { ...set(now), observedGeneration: 3 },
  ]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { SubresourceCall } from "../../generic/resource.ts";
import { reviewLocalSubjectAccess, reviewSelfSubjectAccess, reviewSubjectAccess } from "./access.ts";
import { reviewSelfSubjectRules } from "./rules.ts";

type Review = (call: SubresourceCall<never>) => Promise<KubeObject>;
const pods = { resource: "pods", verb: "get", namespace: "a" };
const path = { path: "/x", verb: "get" };

/** The authorizer allows everything; these tests cover the validation before it. */
async function faultsOf(review: Review, body: object, namespace = ""): Promise<string[]> {
  const services = { authorize: async () => ({ decision: "allow" }) };
  const ctx = { user: { name: "u", groups: [] } };
  const call = { body: { metadata: {}, ...body }, namespace, services, ctx, admit: async () => {} };
  try {
    const { status } = (await review(call as never)) as KubeObject & { status?: unknown };
    return [JSON.stringify(status)];
  } catch (err) {
    assert.ok(err instanceof StatusError);
    const { details, message } = err.status;
    return details?.causes?.map((cause) => `${cause.field}: ${cause.message}`) ?? [message as string];
  }
}

const neither =
  'spec.resourceAttributes: Invalid value: "null": exactly one of nonResourceAttributes or resourceAttributes must be specified';
const both =
  'spec.nonResourceAttributes: Invalid value: authorization.NonResourceAttributes{Path:"/x", Verb:"get"}: cannot be specified in combination with resourceAttributes';
const nobody = 'spec.user: Invalid value: "": at least one of user or group must be specified';

const rows: readonly { name: string; review: Review; body: object; namespace?: string; want: string[] }[] = [
  {
    name: "of a user and a resource",
    review: reviewSubjectAccess,
    body: { spec: { user: "a", resourceAttributes: pods } },
    want: ['{"allowed":true}'],
  },
  { name: "of nothing, without a user", review: reviewSubjectAccess, body: { spec: {} }, want: [neither, nobody] },
  {
    name: "of both, for a group",
    review: reviewSubjectAccess,
    body: { spec: { groups: ["g"], resourceAttributes: pods, nonResourceAttributes: path } },
    want: [both],
  },
  {
    name: "with a name",
    review: reviewSubjectAccess,
    body: { metadata: { name: "x" }, spec: { user: "a", nonResourceAttributes: path } },
    want: [`metadata: Invalid value: ${goStruct("meta/v1.ObjectMeta", { name: "x" }).text}: must be empty`],
  },
  { name: "of one's own of nothing", review: reviewSelfSubjectAccess, body: { spec: {} }, want: [neither] },
  {
    name: "of one's own of both",
    review: reviewSelfSubjectAccess,
    body: { spec: { resourceAttributes: pods, nonResourceAttributes: path } },
    want: [both],
  },
  {
    name: "in a namespace",
    review: reviewLocalSubjectAccess,
    body: { metadata: { namespace: "a" }, spec: { user: "a", resourceAttributes: pods } },
    namespace: "a",
    want: ['{"allowed":true}'],
  },
  {
    name: "in a namespace of another one",
    review: reviewLocalSubjectAccess,
    body: { metadata: { namespace: "b" }, spec: { user: "a", resourceAttributes: pods } },
    namespace: "b",
    want: ['spec.resourceAttributes.namespace: Invalid value: "a": must match metadata.namespace'],
  },
  {
    name: "in a namespace of a path, with labels",
    review: reviewLocalSubjectAccess,
    body: { metadata: { namespace: "a", labels: { b: "c" } }, spec: { user: "a", nonResourceAttributes: path } },
    namespace: "a",
    want: [
      `metadata: Invalid value: ${goStruct("meta/v1.ObjectMeta", { namespace: "a", labels: { b: "c" } }).text}: must be empty except for namespace`,
      'spec.nonResourceAttributes: Invalid value: authorization.NonResourceAttributes{Path:"/x", Verb:"get"}: disallowed on this kind of request',
    ],
  },
  { name: "of rules in no namespace", review: reviewSelfSubjectRules, body: { spec: {} }, want: ["no namespace on request"] },
];

for (const { name, review, body, namespace, want } of rows) {
  test(`a review ${name}`, async () => {
    assert.deepEqual(await faultsOf(review, body, namespace), want);
  });
}

for (const { name, decision, want } of [
  {
    name: "a denial with a reason",
    decision: { decision: "deny", reason: "r" },
    want: { allowed: false, denied: true, reason: "r" },
  },
  { name: "no opinion", decision: { decision: "no-opinion" }, want: { allowed: false } },
  {
    name: "no opinion after an error",
    decision: { decision: "no-opinion", error: new Error("e") },
    want: { allowed: false, evaluationError: "e" },
  },
])
  test(`a review shows ${name} of the authorizers`, async () => {
    const services = { authorize: async () => decision };
    const body = { metadata: {}, spec: { user: "a", resourceAttributes: pods } };
    const { status } = await reviewSubjectAccess({ body, services, admit: async () => {} } as never);
    assert.deepEqual(status, want);
  });

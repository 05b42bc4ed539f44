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
async function faultsOf(review: Review, body: object | undefined, namespace = ""): Promise<string[]> {
  const services = { authorize: async () => ({ decision: "allow" }) };
  const ctx = { user: { name: "u", groups: [] } };
  const call = { body: body && { metadata: {}, ...body }, namespace, services, ctx, admit: async () => {} };
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

const rows: readonly { name: string; review: Review; body: object | undefined; namespace?: string; want: string[] }[] = [
  { name: "of access without a body", review: reviewSubjectAccess, body: undefined, want: ["not a SubjectAccessReview"] },
  {
    name: "in a namespace without a body",
    review: reviewLocalSubjectAccess,
    body: undefined,
    want: ["not a LocaLocalSubjectAccessReview"], // upstream's
  },
  {
    name: "of one's own access without a body",
    review: reviewSelfSubjectAccess,
    body: undefined,
    want: ["not a SelfSubjectAccessReview"],
  },
  { name: "of rules without a body", review: reviewSelfSubjectRules, body: undefined, want: ["not a SelfSubjectRulesReview"] },
  { name: "without a spec", review: reviewSubjectAccess, body: {}, want: [neither, nobody] },
  { name: "in a namespace without a spec", review: reviewLocalSubjectAccess, body: {}, namespace: "a", want: [neither, nobody] },
  { name: "of one's own without a spec", review: reviewSelfSubjectAccess, body: {}, want: [neither] },
  {
    name: "in no namespace",
    review: reviewLocalSubjectAccess,
    body: { spec: { user: "a", resourceAttributes: { verb: "get", resource: "nodes" } } },
    want: ["namespace is required on this type"],
  },
  { name: "of rules without a spec", review: reviewSelfSubjectRules, body: {}, want: ["no namespace on request"] },
  {
    name: "with fields of managers and a time alone",
    review: reviewSubjectAccess,
    body: {
      metadata: { managedFields: [{ manager: "m" }], creationTimestamp: "2022-01-01T00:00:00Z" },
      spec: { user: "a", resourceAttributes: pods },
    },
    want: ['{"allowed":true}'],
  },
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
  {
    name: "with a namespace, of a user everywhere",
    review: reviewSubjectAccess,
    body: { metadata: { namespace: "x" }, spec: { user: "a", nonResourceAttributes: path } },
    want: [`metadata: Invalid value: ${goStruct("meta/v1.ObjectMeta", { namespace: "x" }).text}: must be empty`],
  },
  {
    name: "in a namespace of a resource that names none",
    review: reviewLocalSubjectAccess,
    body: { metadata: { namespace: "a" }, spec: { user: "a", resourceAttributes: { verb: "get", resource: "pods" } } },
    namespace: "a",
    want: ['spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace'],
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

const someone = { name: "u", uid: "7", groups: ["g"], extra: { k: ["v"] } };
const nothing = { namespace: "", group: "", version: "", resource: "", subresource: "", name: "", path: "" };
const access = { namespace: "a", verb: "get", group: "b", version: "v1", resource: "c", subresource: "d", name: "e" };
for (const { name, review, spec, want } of [
  {
    name: "a user and a resource",
    review: reviewSubjectAccess,
    spec: { user: "u", uid: "7", groups: ["g"], extra: { k: ["v"] }, resourceAttributes: access },
    want: { ...access, user: someone, isResourceRequest: true, path: "" },
  },
  {
    name: "a group and a path",
    review: reviewSubjectAccess,
    spec: { groups: ["g"], resourceAttributes: null, nonResourceAttributes: { path: "/x", verb: "post" } },
    want: {
      ...nothing,
      ...{ user: { name: "", uid: "", groups: ["g"], extra: {} }, isResourceRequest: false, verb: "post", path: "/x" },
    },
  },
  {
    name: "a user and nothing of a resource, in a namespace",
    review: reviewLocalSubjectAccess,
    spec: { user: "w", resourceAttributes: { namespace: "a" } },
    want: {
      ...nothing,
      ...{ user: { name: "w", uid: "", groups: [], extra: {} }, isResourceRequest: true, verb: "", namespace: "a" },
    },
  },
  {
    name: "the user of the request",
    review: reviewSelfSubjectAccess,
    spec: { resourceAttributes: access },
    want: { ...access, user: someone, isResourceRequest: true, path: "" },
  },
])
  test(`a review asks the authorizers for all it says of ${name}`, async () => {
    const asked: unknown[] = [];
    const authorize = async (attributes: unknown): Promise<{ decision: string }> => {
      asked.push(attributes);
      return { decision: "allow" };
    };
    const namespace = review === reviewLocalSubjectAccess ? "a" : "";
    const body = { metadata: namespace === "" ? {} : { namespace }, spec };
    await review({ body, namespace, services: { authorize }, ctx: { user: someone }, admit: async () => {} } as never);
    assert.deepEqual(asked, [want]);
  });

const reader = { verbs: ["get"], apiGroups: ["b"], resources: ["c"], resourceNames: ["d"] };
const everywhere = { verbs: ["*"], resources: ["*"], nonResourceURLs: [] };
const visitor = { verbs: ["get"], apiGroups: [], resources: [], nonResourceURLs: ["/x"] };
for (const { name, resolveRules, want } of [
  {
    name: "those of resources and those of paths, each with what it says",
    resolveRules: async () => ({ rules: [reader, everywhere, visitor], incomplete: false, errors: [] }),
    want: {
      resourceRules: [reader, { verbs: ["*"], resources: ["*"] }],
      nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/x"] }],
      incomplete: false,
    },
  },
  {
    name: "incomplete ones with all errors",
    resolveRules: async () => ({ rules: [], incomplete: true, errors: [new Error("e"), new Error("f")] }),
    want: { resourceRules: [], nonResourceRules: [], incomplete: true, evaluationError: "e\nf" },
  },
  {
    name: "incomplete ones where nobody knows any",
    resolveRules: undefined,
    want: { resourceRules: [], nonResourceRules: [], incomplete: true },
  },
])
  test(`a review of rules shows ${name}`, async () => {
    const asked: unknown[] = [];
    const services = {
      ...(resolveRules && {
        resolveRules(...args: unknown[]) {
          asked.push(args);
          return resolveRules();
        },
      }),
    };
    const body = { apiVersion: "authorization.k8s.io/v1", kind: "K", metadata: { labels: {} }, spec: { namespace: "a" } };
    const call = { body, namespace: "", services, ctx: { user: someone }, admit: async () => {} };
    const { apiVersion, kind } = body;
    assert.deepEqual(await reviewSelfSubjectRules(call as never), { apiVersion, kind, metadata: {}, spec: {}, status: want });
    if (resolveRules) assert.deepEqual(asked, [[someone, "a"]]);
  });

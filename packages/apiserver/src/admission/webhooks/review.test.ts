/** What a webhook is sent, and which of its answers are taken. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { AdmissionAttributes } from "../plugin.ts";
import { newReview, type Review, readAnswer } from "./review.ts";

const pods = { group: "", version: "v1", resource: "pods", kind: "Pod" };

/** The request of a review. @param shown the version that the webhook expects */
function requestOf(more: object = {}, shown = pods): Record<string, unknown> {
  const attributes = {
    ...{ operation: "CREATE", kind: pods, resource: pods, subresource: "", namespace: "web", name: "a", dryRun: false },
    user: { name: "ann", groups: [] },
    ...more,
  } as unknown as AdmissionAttributes;
  const objects = { kind: shown, resource: shown, object: undefined, oldObject: undefined };
  return JSON.parse(atOnce(newReview(["v1"], attributes, objects)).body).request;
}

test("a review has the user with uid, groups and extra fields, where there are any", () => {
  const user = { name: "ann", uid: "1", groups: ["a", "b"], extra: { scopes: ["x", "y"] } };
  assert.deepEqual(requestOf({ user })["userInfo"], {
    username: "ann",
    uid: "1",
    groups: ["a", "b"],
    extra: { scopes: ["x", "y"] },
  });
  assert.deepEqual(requestOf()["userInfo"], { username: "ann" });
});

test("a review has the subresource, name and namespace, and its own and the requested version", () => {
  const names = ["name", "namespace", "subResource", "requestSubResource"];
  const namesIn = (more: object) => names.map((name) => requestOf(more)[name]);
  assert.deepEqual(namesIn({ subresource: "status" }), ["a", "web", "status", "status"]);
  assert.deepEqual(namesIn({ name: "", namespace: "" }), [undefined, undefined, undefined, undefined]);
  const shown = { ...pods, group: "other", version: "v2" };
  assert.partialDeepStrictEqual(requestOf({}, shown), {
    kind: { group: "other", version: "v2", kind: "Pod" },
    resource: { group: "other", version: "v2", resource: "pods" },
    requestKind: { group: "", version: "v1", kind: "Pod" },
    requestResource: { group: "", version: "v1", resource: "pods" },
  });
});

const deletion = { gracePeriodSeconds: 5, propagationPolicy: "Orphan", preconditions: { uid: "1" } };
const meta = { apiVersion: "meta.k8s.io/v1" };
for (const { name, more, want } of [
  { name: "a creation", more: { operation: "CREATE", options: {} }, want: { ...meta, kind: "CreateOptions" } },
  {
    name: "a dry run of an update by a manager",
    more: { operation: "UPDATE", dryRun: true, options: { dryRun: true, fieldManager: "me", fieldValidation: "Warn" } },
    want: { ...meta, kind: "UpdateOptions", dryRun: ["All"], fieldManager: "me" },
  },
  { name: "a creation by no manager", more: { options: { fieldManager: "" } }, want: { ...meta, kind: "CreateOptions" } },
  { name: "a deletion", more: { operation: "DELETE", options: deletion }, want: { ...meta, kind: "DeleteOptions", ...deletion } },
  { name: "a connection", more: { operation: "CONNECT" }, want: null },
]) {
  test(`a review has the options of ${name}`, () => assert.deepEqual(requestOf(more)["options"], want));
}

test("a review is in the first of the webhook's versions that is known", () => {
  const attributes = { user: { name: "", groups: [] }, operation: "CREATE", kind: pods, resource: pods, subresource: "" };
  const objects = { kind: pods, resource: pods, object: undefined, oldObject: undefined };
  const versionFor = (...versions: string[]) => atOnce(newReview(versions, attributes as never, objects)).version;
  assert.equal(versionFor("v2", "v1beta1", "v1"), "v1beta1");
  assert.equal(versionFor("v1", "v1beta1"), "v1");
  assert.throws(() => versionFor("v2"), /does not accept known AdmissionReview versions \(v1, v1beta1\)/);
});

const patch = Buffer.from("[]").toString("base64");
function answerOf(response: object, { expectsPatch = false, version = "v1", review = {} as object } = {}) {
  const whole = { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", response: { uid: "1", ...response }, ...review };
  const asked = { version, uid: "1", body: "" } as Review;
  return atOnce(readAnswer(Buffer.from(JSON.stringify(whole)), asked, expectsPatch));
}

for (const { name, response, more = {}, want } of [
  { name: "of another kind", response: {}, more: { review: { kind: "Review" } }, want: /got admission.k8s.io\/v1, Kind=Review$/ },
  { name: "of no version", response: {}, more: { review: { apiVersion: undefined } }, want: /got \/, Kind=AdmissionReview$/ },
  { name: "to another question", response: { uid: "2" }, want: /expected response.uid="1", got "2"$/ },
  { name: "to no question", response: { uid: undefined }, want: /expected response.uid="1", got ""$/ },
  { name: "without a response", response: {}, more: { review: { response: null } }, want: /webhook response was absent$/ },
  { name: "with a patch that was not asked for", response: { patch }, want: /may not return response.patch$/ },
  {
    name: "with a patch's type that was not asked for",
    response: { patchType: "JSONPatch" },
    want: /may not return response.patchType$/,
  },
  {
    name: "with an empty type of a patch that was not asked for",
    response: { patchType: "" },
    want: /may not return response.patchType$/,
  },
  {
    ...{ name: "with a patch of no type", response: { patch }, more: { expectsPatch: true } },
    want: /returned response.patch but not response.patchType$/,
  },
  {
    ...{ name: "with a type of no patch", response: { patchType: "JSONPatch" }, more: { expectsPatch: true } },
    want: /returned response.patchType but not response.patch$/,
  },
  {
    ...{ name: "with an empty type", response: { patch, patchType: "" }, more: { expectsPatch: true } },
    want: /returned invalid response.patchType of ""$/,
  },
]) {
  test(`an answer ${name} is refused`, () => assert.throws(() => answerOf(response, more), want));
}

test("an answer in v1beta1 is taken without its kind, its uid and the type of its patch", () => {
  const more = { expectsPatch: true, version: "v1beta1", review: { kind: undefined, apiVersion: undefined } };
  const answer = answerOf({ uid: undefined, allowed: true, patch }, more);
  assert.deepEqual([answer.allowed, String(answer.patch), answer.patchType], [true, "[]", "JSONPatch"]);
});

test("an answer allows with true alone, and may lack all else", () => {
  const { allowed, ...others } = answerOf({ allowed: "true" });
  assert.equal(allowed, false);
  assert.deepEqual(others, { status: undefined, patch: undefined, patchType: "", warnings: [], auditAnnotations: {} });
});

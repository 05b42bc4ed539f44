/**
 * AdmissionReview requests and responses, v1 and v1beta1.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/request/admissionreview.go
 */
import { randomUUID } from "node:crypto";
import { encodeUntyped, parseLargeJson } from "@coxswain/apimachinery/objects/codec/json";
import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { type GroupVersionKind, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject, Status } from "@coxswain/apimachinery/objects/meta/types";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { AdmissionAttributes } from "../plugin.ts";
import type { ResourceVersion } from "./matcher.ts";

export interface WebhookAnswer {
  readonly allowed: boolean;
  readonly status: Status | undefined;
  readonly patch: Buffer | undefined;
  readonly patchType: string;
  readonly warnings: readonly string[];
  readonly auditAnnotations: Readonly<Record<string, string>>;
}

export interface Review {
  readonly version: "v1" | "v1beta1";
  readonly uid: string;
  readonly body: string;
}

/** Objects sent to the webhook, in the version it requested. */
export interface ReviewedObjects {
  readonly kind: GroupVersionKind;
  readonly resource: ResourceVersion;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
}

/**
 * @param versions in the webhook's order of preference; the first supported one is used
 * @throws Error when none is supported.
 */
export function* newReview(versions: readonly string[], attributes: AdmissionAttributes, shown: ReviewedObjects): Steps<Review> {
  const version = versions.find((candidate) => candidate === "v1" || candidate === "v1beta1");
  if (version === undefined) throw new Error("webhook does not accept known AdmissionReview versions (v1, v1beta1)");
  const { kind, resource, subresource, user } = attributes;
  const uid = randomUUID();
  const request = {
    uid,
    kind: { group: shown.kind.group, version: shown.kind.version, kind: shown.kind.kind },
    resource: { group: shown.resource.group, version: shown.resource.version, resource: shown.resource.resource },
    ...(subresource === "" ? {} : { subResource: subresource }),
    requestKind: { group: kind.group, version: kind.version, kind: kind.kind },
    requestResource: { group: resource.group, version: resource.version, resource: resource.resource },
    ...(subresource === "" ? {} : { requestSubResource: subresource }),
    ...(attributes.name === "" ? {} : { name: attributes.name }),
    ...(attributes.namespace === "" ? {} : { namespace: attributes.namespace }),
    operation: attributes.operation,
    userInfo: {
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.groups.length === 0 ? {} : { groups: user.groups }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    },
    dryRun: attributes.dryRun,
    options: optionsOf(attributes),
  };
  const object = yield* jsonOf(shown.object);
  const oldObject = yield* jsonOf(shown.oldObject);
  const objects = `"object":${object},"oldObject":${oldObject}`;
  const head = `"kind":"AdmissionReview","apiVersion":"admission.k8s.io/${version}"`;
  return { version, uid, body: `{${head},"request":{${objects},${encodeUntyped(request).toString().slice(1)}}` };
}

function* jsonOf(object: KubeObject | undefined): Steps<string> {
  return object === undefined ? "null" : yield* encodeJsonTextInSteps(object);
}

const optionsKinds = { CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions", CONNECT: undefined };

/** Operation options of meta.k8s.io; a PATCH is reviewed as UPDATE. */
function optionsOf({ operation, options, dryRun }: AdmissionAttributes): object | null {
  const kind = optionsKinds[operation];
  if (kind === undefined) return null;
  const own: { fieldManager?: string } = options ?? {};
  const head = { kind, apiVersion: "meta.k8s.io/v1" };
  if (operation === "DELETE") return { ...own, ...head };
  return { ...head, ...(dryRun ? { dryRun: ["All"] } : {}), ...(own.fieldManager ? { fieldManager: own.fieldManager } : {}) };
}

interface ReviewAnswer {
  kind?: string;
  apiVersion?: string;
  response?: {
    uid?: string;
    allowed?: boolean;
    status?: Status;
    patch?: string;
    patchType?: string;
    warnings?: string[];
    auditAnnotations?: Record<string, string>;
  } | null;
}

/** @throws Error for an invalid response. */
export function* readAnswer(body: Buffer, requested: Review, expectsPatch: boolean): Steps<WebhookAnswer> {
  const review: ReviewAnswer = (yield* parseLargeJson(body)) ?? {};
  yield;
  const { response } = review;
  if (typeof response !== "object" || response === null) throw new Error("webhook response was absent");
  // Responses of v1beta1 are not validated, as upstream.
  if (requested.version === "v1") checkAnswer(review, response, requested, expectsPatch);
  return {
    allowed: response.allowed === true,
    status: response.status,
    patch: response.patch ? Buffer.from(response.patch, "base64") : undefined,
    patchType: requested.version === "v1" ? (response.patchType ?? "") : "JSONPatch",
    warnings: response.warnings ?? [],
    auditAnnotations: response.auditAnnotations ?? {},
  };
}

function checkAnswer(
  review: ReviewAnswer,
  response: NonNullable<ReviewAnswer["response"]>,
  { uid }: Review,
  expectsPatch: boolean,
): void {
  if (response.uid !== uid) throw new Error(`expected response.uid=${goQuote(uid)}, got ${goQuote(response.uid ?? "")}`);
  if (review.apiVersion !== "admission.k8s.io/v1" || review.kind !== "AdmissionReview") {
    const { group, version } = parseGroupVersion(review.apiVersion ?? "") ?? { group: "", version: "" };
    throw new Error(
      `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${group}/${version}, Kind=${review.kind ?? ""}`,
    );
  }
  const { patch, patchType } = response;
  if (!expectsPatch) {
    if (patch) throw new Error("validating webhook may not return response.patch");
    if (patchType !== undefined) throw new Error("validating webhook may not return response.patchType");
    return;
  }
  if (patch && patchType === undefined) throw new Error("webhook returned response.patch but not response.patchType");
  if (!patch && patchType !== undefined) throw new Error("webhook returned response.patchType but not response.patch");
  if (patchType === "") throw new Error('webhook returned invalid response.patchType of ""');
}

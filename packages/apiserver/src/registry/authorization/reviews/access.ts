import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { badRequest, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SubjectAccessReview,
} from "@coxswain/apimachinery/objects/schema/kinds/authorization/v1";
import type { Attributes } from "../../../authorization/authorizer.ts";
import type { UserInfo } from "../../../request/context.ts";
import type { SubresourceCall } from "../../generic/resource.ts";

/**
 * Access reviews: admitted like objects, evaluated by the authorizers of this server and not stored.
 * Source: pkg/registry/authorization/{subjectaccessreview,selfsubjectaccessreview,localsubjectaccessreview}/rest.go
 */
export async function reviewSubjectAccess(call: SubresourceCall<SubjectAccessReview>): Promise<SubjectAccessReview> {
  const review = call.body;
  if (!review) throw badRequest("not a SubjectAccessReview");
  await call.admit(review, undefined);
  const spec = review.spec ?? {};
  const errors = [...specErrors(spec), ...metadataErrors(review, "")];
  if (errors.length > 0) throw refusal(errors);
  return { ...review, status: await decide(call, spec, reviewedUser(spec)) };
}

/**
 * As `reviewSubjectAccess` in the namespace of the path, which resource attributes must name; others are refused.
 * @throws Invalid
 */
export async function reviewLocalSubjectAccess(
  call: SubresourceCall<LocalSubjectAccessReview>,
): Promise<LocalSubjectAccessReview> {
  const review = call.body;
  if (!review) throw badRequest("not a LocaLocalSubjectAccessReview");
  await call.admit(review, undefined);
  const spec = review.spec ?? {};
  const errors = [...specErrors(spec), ...metadataErrors(review, call.namespace)];
  if (spec.resourceAttributes && spec.resourceAttributes.namespace !== review.metadata.namespace) {
    errors.push(
      invalidValue("spec.resourceAttributes.namespace", spec.resourceAttributes.namespace ?? "", "must match metadata.namespace"),
    );
  }
  if (spec.nonResourceAttributes) {
    const shown = goStruct("authorization/v1.NonResourceAttributes", spec.nonResourceAttributes);
    errors.push(invalidValue("spec.nonResourceAttributes", shown, "disallowed on this kind of request"));
  }
  if (errors.length > 0) throw refusal(errors);
  if (call.namespace === "") throw badRequest("namespace is required on this type");
  return { ...review, status: await decide(call, spec, reviewedUser(spec)) };
}

/** As `reviewSubjectAccess`, for the user of the request. @throws Invalid */
export async function reviewSelfSubjectAccess(call: SubresourceCall<SelfSubjectAccessReview>): Promise<SelfSubjectAccessReview> {
  const review = call.body;
  if (!review) throw badRequest("not a SelfSubjectAccessReview");
  await call.admit(review, undefined);
  const spec = review.spec ?? {};
  const errors = [...attributeErrors(spec), ...metadataErrors(review, "")];
  if (errors.length > 0) throw refusal(errors);
  return { ...review, status: await decide(call, spec, call.ctx.user) };
}

/** The kind is empty in this error, as upstream, where the decoded object has none. */
const refusal = (errors: readonly FieldError[]): Error => invalid({ group: "authorization.k8s.io", kind: "" }, "", errors);

type Spec = NonNullable<SubjectAccessReview["spec"]>;
type RequestedAccess = Pick<Spec, "resourceAttributes" | "nonResourceAttributes">;

function reviewedUser(spec: Spec): UserInfo {
  return { name: spec.user ?? "", uid: spec.uid ?? "", groups: spec.groups ?? [], extra: spec.extra ?? {} };
}

async function decide(call: SubresourceCall<KubeObject>, requested: RequestedAccess, user: UserInfo) {
  const { resourceAttributes: r, nonResourceAttributes: n } = requested;
  const attributes: Attributes = {
    user,
    verb: (r ?? n)?.verb ?? "",
    isResourceRequest: r !== undefined && r !== null,
    namespace: r?.namespace ?? "",
    group: r?.group ?? "",
    version: r?.version ?? "",
    resource: r?.resource ?? "",
    subresource: r?.subresource ?? "",
    name: r?.name ?? "",
    path: n?.path ?? "",
  };
  const decision = await call.services.authorize?.(attributes);
  const status: NonNullable<SubjectAccessReview["status"]> = { allowed: decision?.decision === "allow" };
  if (decision?.decision === "deny") status.denied = true;
  if (decision?.reason) status.reason = decision.reason;
  if (decision?.error) status.evaluationError = decision.error.message;
  return status;
}

/** The metadata must be empty except for managedFields and, in a LocalSubjectAccessReview, the namespace of the path. */
function metadataErrors(review: KubeObject, namespace: string): FieldError[] {
  const { managedFields: _managed, ...metadata } = review.metadata ?? {};
  const { namespace: given = "", creationTimestamp: _time, ...rest } = metadata;
  const errors: FieldError[] = [];
  if (!semanticEqual(rest, {}) || (namespace === "" && given !== "")) {
    errors.push(
      invalidValue(
        "metadata",
        goStruct("meta/v1.ObjectMeta", review.metadata),
        namespace === "" ? "must be empty" : "must be empty except for namespace",
      ),
    );
  }
  return errors;
}

function attributeErrors(spec: RequestedAccess): FieldError[] {
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (resourceAttributes && nonResourceAttributes) {
    return [
      invalidValue(
        "spec.nonResourceAttributes",
        goStruct("authorization/v1.NonResourceAttributes", nonResourceAttributes),
        "cannot be specified in combination with resourceAttributes",
      ),
    ];
  }
  if (!resourceAttributes && !nonResourceAttributes) {
    return [
      invalidValue(
        "spec.resourceAttributes",
        null,
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
      ),
    ];
  }
  return [];
}

function specErrors(spec: Spec): FieldError[] {
  const errors = attributeErrors(spec);
  if (!spec.user && !spec.groups?.length)
    errors.push(invalidValue("spec.user", spec.user ?? "", "at least one of user or group must be specified"));
  return errors;
}

import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import type { SelfSubjectRulesReview } from "@coxswain/apimachinery/objects/schema/kinds/authorization/v1";
import type { PolicyRule } from "../../../authorization/authorizer.ts";
import type { SubresourceCall } from "../../generic/resource.ts";

/** Rules of the user in a namespace. Source: pkg/registry/authorization/selfsubjectrulesreview/rest.go */
export async function reviewSelfSubjectRules(call: SubresourceCall<SelfSubjectRulesReview>): Promise<SelfSubjectRulesReview> {
  const review = call.body;
  if (!review) throw badRequest("not a SelfSubjectRulesReview");
  await call.admit(review, undefined);
  const namespace = review.spec?.namespace ?? "";
  if (namespace === "") throw badRequest("no namespace on request");
  const resolved = (await call.services.resolveRules?.(call.ctx.user, namespace)) ?? { rules: [], incomplete: true, errors: [] };
  const status: NonNullable<SelfSubjectRulesReview["status"]> = {
    resourceRules: resolved.rules.filter((rule) => rule.resources?.length).map(resourceRule),
    nonResourceRules: resolved.rules
      .filter((rule) => rule.nonResourceURLs?.length)
      .map((rule) => ({ verbs: rule.verbs, nonResourceURLs: rule.nonResourceURLs ?? [] })),
    incomplete: resolved.incomplete,
  };
  if (resolved.errors.length > 0) status.evaluationError = resolved.errors.map((err) => err.message).join("\n");
  const { apiVersion, kind } = review;
  return { ...(apiVersion && { apiVersion }), ...(kind && { kind }), metadata: {}, spec: {}, status }; // upstream does not return the requested spec either
}

function resourceRule(rule: PolicyRule) {
  return {
    verbs: rule.verbs,
    ...(rule.apiGroups?.length ? { apiGroups: rule.apiGroups } : {}),
    ...(rule.resources?.length ? { resources: rule.resources } : {}),
    ...(rule.resourceNames?.length ? { resourceNames: rule.resourceNames } : {}),
  };
}

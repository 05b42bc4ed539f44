import { inGroup } from "../definition.ts";
import type { ResourceDefinition, SubresourceDefinition } from "../generic/resource.ts";
import { reviewLocalSubjectAccess, reviewSelfSubjectAccess, reviewSubjectAccess } from "./reviews/access.ts";
import { reviewSelfSubjectRules } from "./reviews/rules.ts";

type Create = NonNullable<Extract<SubresourceDefinition["handler"], { type: "object" }>["create"]>;

function review(resource: string, kind: string, namespaced: boolean, create: Create) {
  return {
    resource,
    kind,
    namespaced,
    verbs: ["create"],
    versions: ["v1"],
    subresources: { "": { kind, verbs: ["create"], handler: { type: "object", create } as const } },
  };
}

export function authorizationResources(): ResourceDefinition[] {
  return inGroup("authorization.k8s.io", [
    review("localsubjectaccessreviews", "LocalSubjectAccessReview", true, reviewLocalSubjectAccess),
    review("selfsubjectaccessreviews", "SelfSubjectAccessReview", false, reviewSelfSubjectAccess),
    review("selfsubjectrulesreviews", "SelfSubjectRulesReview", false, reviewSelfSubjectRules),
    review("subjectaccessreviews", "SubjectAccessReview", false, reviewSubjectAccess),
  ]);
}

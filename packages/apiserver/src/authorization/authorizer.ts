import type { UserInfo } from "../request/context.ts";

/**
 * Attributes of a request; resource requests have `resource`, non-resource requests only `path`.
 * Source: k8s.io/apiserver pkg/authorization/authorizer
 */
export interface Attributes {
  readonly user: UserInfo;
  readonly verb: string;
  readonly isResourceRequest: boolean;
  readonly namespace: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly path: string;
}

export interface Decision {
  readonly decision: "allow" | "deny" | "no-opinion";
  readonly reason?: string;
  readonly error?: Error;
}

export type Authorizer = (attributes: Attributes) => Promise<Decision> | Decision;

export interface PolicyRule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** The rules that apply to a user in a namespace, for SelfSubjectRulesReview and escalation checks. */
export type RuleResolver = (
  user: UserInfo,
  namespace: string,
) => Promise<{ rules: PolicyRule[]; incomplete: boolean; errors: Error[] }>;

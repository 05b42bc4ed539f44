/**
 * Matching of requests against the rules of a flow schema.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/rule.go
 */
import type {
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  ResourcePolicyRule,
  Subject,
} from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import type { UserInfo } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";
import { serviceAccountUsername, splitServiceAccountUsername } from "../request/user-names.ts";

export interface Classified {
  readonly info: RequestInfo;
  readonly user: UserInfo;
}

/** Whether any of the rules matches the user and the request. */
export function matchesRules(rules: readonly PolicyRulesWithSubjects[], { info, user }: Classified): boolean {
  for (const rule of rules) {
    if (!rule.subjects.some((subject) => isSubject(subject, user))) continue;
    const speaks = info.isResourceRequest
      ? rule.resourceRules?.some((one) => matchesResource(one, info))
      : rule.nonResourceRules?.some((one) => matchesPath(one, info));
    if (speaks === true) return true;
  }
  return false;
}

function isSubject(subject: Subject, user: UserInfo): boolean {
  switch (subject.kind) {
    case "User":
      return subject.user !== undefined && (subject.user.name === "*" || subject.user.name === user.name);
    case "Group":
      return subject.group !== undefined && (subject.group.name === "*" || user.groups.includes(subject.group.name));
    case "ServiceAccount": {
      if (subject.serviceAccount === undefined) return false;
      const { namespace, name } = subject.serviceAccount;
      if (name !== "*") return user.name === serviceAccountUsername(namespace, name);
      return splitServiceAccountUsername(user.name)?.namespace === namespace;
    }
    default:
      return false;
  }
}

const holds = (list: readonly string[], value: string): boolean => list.includes("*") || list.includes(value);

function matchesResource(rule: ResourcePolicyRule, { verb, group, resource, subresource, namespace }: RequestInfo): boolean {
  return (
    holds(rule.verbs, verb) &&
    holds(rule.resources, subresource === "" ? resource : `${resource}/${subresource}`) &&
    holds(rule.apiGroups, group) &&
    (namespace === "" ? rule.clusterScope === true : holds(rule.namespaces, namespace))
  );
}

function matchesPath({ verbs, nonResourceURLs }: NonResourcePolicyRule, { verb, path }: RequestInfo): boolean {
  return (
    holds(verbs, verb) && nonResourceURLs.some((url) => (url.endsWith("*") ? path.startsWith(url.slice(0, -1)) : path === url))
  );
}

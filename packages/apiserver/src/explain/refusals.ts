/** Why a controller could not create an object, from the API server's error text in its condition or event. */
import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { oneLine, type Problem } from "./rule.ts";

interface Refusal {
  readonly pattern: RegExp;
  readonly reason: string;
  readonly summary: (match: RegExpExecArray) => string;
  readonly remedy: string;
  /** The object that rejected the request, for example the policy; the explanation refers to it. */
  readonly follow?: (match: RegExpExecArray, namespace: string) => ObjectRef;
}

const refTo = (group: string, resource: string, kind: string, namespace: string, name: string): ObjectRef => ({
  group,
  resource,
  kind,
  namespace,
  name,
  uid: "",
});

/** Source: the texts of the admission plugins, and of k8s.io/apiserver pkg/admission/plugin/webhook/errors */
const refusals: readonly Refusal[] = [
  {
    pattern: /exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: ([^ ]+)/,
    reason: "QuotaExceeded",
    summary: ([, name, requested, used, limited]) =>
      `quota ${name} does not allow it: requested ${requested}, used ${used}, limited to ${limited}`,
    remedy: "Raise the quota, delete what is not needed in the namespace, or request less.",
  },
  {
    pattern: /failed quota: ([^:]+): must specify ([\w.,/-]+)/,
    reason: "QuotaNeedsRequests",
    summary: ([, name, fields]) => `quota ${name} demands that every container specifies ${fields}`,
    remedy: "Set these requests and limits in the pod template, or create a LimitRange with defaults in the namespace.",
  },
  {
    pattern: /failed calling webhook "([^"]+)": (.+)$/,
    reason: "WebhookFailed",
    summary: ([, name, failure]) => `admission webhook ${name} cannot be called: ${oneLine(failure, 240)}`,
    remedy:
      "Repair the webhook's server or its Service; or set failurePolicy: Ignore, or delete the webhook configuration if it is not needed any more.",
  },
  {
    pattern: /admission webhook "([^"]+)" denied the request: ?(.*)$/,
    reason: "WebhookDenied",
    summary: ([, name, why]) => `admission webhook ${name} refuses it: ${oneLine(why, 240)}`,
    remedy: "Change the pod template to what the webhook demands, or contact the operator of the webhook.",
  },
  {
    pattern: /serviceaccount "([^"]+)" not found|service account [^ ]+\/([^ :]+) was not found/,
    reason: "ServiceAccountMissing",
    summary: ([, a, b]) => `service account ${a ?? b} does not exist`,
    remedy: "Create the service account, or name another one in the pod template.",
  },
  {
    pattern: /violates PodSecurity "([^"]+)": (.+)$/,
    reason: "PodSecurity",
    summary: ([, level, why]) => `pod security level ${level} of the namespace forbids it: ${oneLine(why, 240)}`,
    remedy: "Change the security context in the pod template, or the level in the namespace's labels.",
  },
  {
    pattern:
      /((?:maximum|minimum) [\w./-]+ usage per \w+ is [^.\]]+|[\w./-]+ max limit to request ratio per \w+ is [^,]+, but [^,\]]+)/,
    reason: "LimitRange",
    summary: ([, what]) => `a LimitRange of the namespace forbids it: ${what}`,
    remedy: "Change requests and limits in the pod template, or the LimitRange.",
  },
  {
    pattern: /no PriorityClass with name (\S+) was found/,
    reason: "PriorityClassMissing",
    summary: ([, name]) => `priority class ${name} does not exist`,
    remedy: "Create the priority class, or name another one in the pod template.",
  },
  {
    pattern: /RuntimeClass "?([^" ]+)"? not found/i,
    reason: "RuntimeClassMissing",
    summary: ([, name]) => `runtime class ${name} does not exist`,
    remedy: "Create the runtime class, or leave runtimeClassName out.",
  },
  {
    pattern: /is forbidden: (?:PodSecurityPolicy: )?unable to (?:validate|admit)[^:]*: (.+)$/,
    reason: "Forbidden",
    summary: ([, why]) => `admission refuses it: ${oneLine(why, 240)}`,
    remedy: "Change the pod template to what is allowed in the namespace.",
  },
];

/** Why pods cannot be created. @param message of the condition or event */
export function refusedProblem(message: string | undefined, by: string, since: { since?: string }): Problem {
  // Webhooks answer with texts of several lines.
  const text = oneLine(message, Number.POSITIVE_INFINITY);
  for (const { pattern, reason, summary, remedy } of refusals) {
    const match = pattern.exec(text);
    if (match !== null) return { by, reason, summary: `pods cannot be created: ${summary(match)}`, remedy, ...since };
  }
  return { by, reason: "FailedCreate", summary: `pods cannot be created: ${oneLine(text)}`, ...since };
}

export const refToObject = refTo;

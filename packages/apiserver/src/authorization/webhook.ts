/**
 * Authorizes by SubjectAccessReview against a remote service. Allowed and denied results are cached with separate TTLs; when
 * the call fails, the authorizer has no opinion.
 * Source: k8s.io/apiserver plugin/pkg/authorizer/webhook/webhook.go
 */
import { errorOf } from "@coxswain/apimachinery/process/narrowing/error-of";
import { LRUCache } from "lru-cache";
import type { ReviewWebhook } from "../authentication/review-webhook.ts";
import type { Attributes, Authorizer, Decision, RuleResolver } from "./authorizer.ts";

interface WebhookAuthorizerOptions {
  readonly review: ReviewWebhook;
  /** Version of authorization.k8s.io: `v1` or `v1beta1`. */
  readonly version: string;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  readonly now: () => number;
}

/** @throws Error for an unsupported version. */
export function checkAuthorizationWebhookVersion(version: string): void {
  if (version === "v1" || version === "v1beta1") return;
  throw new Error(`unsupported webhook authorizer version ${JSON.stringify(version)}, supported versions are "v1", "v1beta1"`);
}

/** A webhook cannot list a user's rules: the answer is incomplete and has upstream's error text. */
export const webhookRules: RuleResolver = async () => ({
  rules: [],
  incomplete: true,
  errors: [new Error("webhook authorizer does not support user rule resolution")],
});

const mostAnswers = 8192;
/** Longer cache keys are not cached, to bound memory: their texts are chosen by clients. */
const longestKept = 10_000;

export function webhookAuthorizer(options: WebhookAuthorizerOptions): Authorizer {
  const answers = new LRUCache<string, { decision: Decision; untilMs: number }>({ max: mostAnswers });
  const apiVersion = `authorization.k8s.io/${options.version}`;
  return async (attributes) => {
    const spec = specOf(attributes, options.version);
    const key = JSON.stringify(spec);
    const known = answers.get(key);
    if (known !== undefined && options.now() < known.untilMs) return known.decision;
    let status: Record<string, unknown>;
    try {
      // Cast: the reviews of both versions have these fields; the types name one.
      status = await options.review({
        kind: "SubjectAccessReview",
        apiVersion,
        metadata: { creationTimestamp: null },
        spec,
        status: { allowed: false },
      } as never);
    } catch (err) {
      return { decision: "no-opinion", error: errorOf(err) };
    }
    const decision = decisionOf(status);
    if (isKept(attributes)) {
      const ttlMs = status["allowed"] === true ? options.authorizedTtlMs : options.unauthorizedTtlMs;
      answers.set(key, { decision, untilMs: options.now() + ttlMs });
    }
    return decision;
  };
}

function specOf(attributes: Attributes, version: string): object {
  const { user } = attributes;
  const target = attributes.isResourceRequest
    ? {
        resourceAttributes: filled({
          namespace: attributes.namespace,
          verb: attributes.verb,
          group: attributes.group,
          version: attributes.version,
          resource: attributes.resource,
          subresource: attributes.subresource,
          name: attributes.name,
        }),
      }
    : { nonResourceAttributes: filled({ path: attributes.path, verb: attributes.verb }) };
  return {
    ...target,
    ...(user.name === "" ? {} : { user: user.name }),
    // The only field that differs between the versions.
    ...(user.groups.length === 0 ? {} : { [version === "v1beta1" ? "group" : "groups"]: user.groups }),
    ...(user.extra === undefined || Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
    ...(user.uid === undefined || user.uid === "" ? {} : { uid: user.uid }),
  };
}

function filled(fields: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}

function decisionOf(status: Record<string, unknown>): Decision {
  const reason = typeof status["reason"] === "string" && status["reason"] !== "" ? { reason: status["reason"] } : {};
  const [allowed, denied] = [status["allowed"] === true, status["denied"] === true];
  if (allowed && denied) {
    const error = new Error("webhook subject access review returned both allow and deny response");
    return { decision: "deny", ...reason, error };
  }
  if (denied) return { decision: "deny", ...reason };
  return { decision: allowed ? "allow" : "no-opinion", ...reason };
}

function isKept(attributes: Attributes): boolean {
  const { namespace, verb, group, version, resource, subresource, name, path } = attributes;
  return [namespace, verb, group, version, resource, subresource, name, path].join("").length < longestKept;
}

/**
 * Authorization for components other than the API server: privileged groups and public paths are allowed locally, anything else
 * is decided by SubjectAccessReview. Without a client it is denied.
 * Source: k8s.io/apiserver pkg/authorization/authorizerfactory/delegating.go, pkg/authorization/path/path.go
 */
import type { Client } from "../../client/client.ts";
import { withReviewRetries } from "../../client/retry.ts";
import type { SubjectAccessReview, SubjectAccessReviewSpec } from "../../objects/schema/kinds/authorization/v1.ts";
import { subjectAccessReviews } from "../../objects/schema/kinds/resources.ts";
import type { Clock } from "../../process/clock/clock.ts";
import type { MetricsRegistry } from "../../process/metrics/registry.ts";
import type { UserInfo } from "../authentication/user.ts";
import { newAnswerCache } from "./answer-cache.ts";
import { type MeasuredReview, newReviewMetrics } from "./review-metrics.ts";

interface DelegatedAuthorizationOptions {
  readonly client: Client | undefined;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  /** Groups that are allowed everything without a review. */
  readonly alwaysAllowGroups: readonly string[];
  /** Paths allowed to all users; a trailing `*` matches any suffix. */
  readonly alwaysAllowPaths: readonly string[];
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

type AccessAttributes = Pick<SubjectAccessReviewSpec, "resourceAttributes" | "nonResourceAttributes">;

interface Access {
  readonly allowed: boolean;
  /** Reason given by the API server; `""` without one. */
  readonly reason: string;
}

/** @throws Error when the review fails; the caller has to deny the request */
export type DelegatedAuthorizer = (user: UserInfo, attributes: AccessAttributes) => Promise<Access>;

const always: Access = { allowed: true, reason: "" };
const never: Access = { allowed: false, reason: "" };

/** @throws Error for a path with a `*` other than at the end */
export function delegatedAuthorization(options: DelegatedAuthorizationOptions): DelegatedAuthorizer {
  const { client } = options;
  const isForAll = pathMatcher(options.alwaysAllowPaths);
  const answers = newAnswerCache<Access>(options.clock);
  const measured = newReviewMetrics(options.metrics, "authz", options.clock);
  return async (user, attributes) => {
    if (options.alwaysAllowGroups.some((group) => user.groups.includes(group))) return always;
    const path = attributes.nonResourceAttributes?.path;
    if (path !== undefined && isForAll(path)) return always;
    if (client === undefined) return never;
    return answers.get(
      JSON.stringify([user, attributes]),
      ({ allowed }) => (allowed ? options.authorizedTtlMs : options.unauthorizedTtlMs),
      () => reviewAccess({ client, clock: options.clock, measured }, user, attributes),
    );
  };
}

/** Time limit of all attempts together. */
const reviewTimeoutMs = 10_000;

async function reviewAccess(
  { client, clock, measured }: { client: Client; clock: Clock; measured: MeasuredReview },
  user: UserInfo,
  attributes: AccessAttributes,
): Promise<Access> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    metadata: {},
    spec: { user: user.name, uid: user.uid ?? "", groups: [...user.groups], extra: user.extra ?? {}, ...attributes },
  };
  const signal = AbortSignal.timeout(reviewTimeoutMs);
  const createReview = () =>
    // Cast: the server fills in the status, which the kind's type requires.
    measured(() => client.create<SubjectAccessReview>(subjectAccessReviews, review as never, { signal }));
  const { status } = await withReviewRetries(createReview, clock, signal);
  return { allowed: status?.allowed === true && status.denied !== true, reason: status?.reason ?? "" };
}

function pathMatcher(patterns: readonly string[]): (path: string) => boolean {
  const exact = new Set<string>();
  const prefixes: string[] = [];
  for (const pattern of patterns) {
    // Leading slashes are ignored.
    const plain = pattern.replace(/^\/+/, "");
    const star = plain.indexOf("*");
    if (star >= 0 && star !== plain.length - 1) throw new Error("only trailing * allowed in paths");
    if (star >= 0) prefixes.push(plain.slice(0, -1));
    else exact.add(plain);
  }
  return (path) => {
    const plain = path.replace(/^\/+/, "");
    return exact.has(plain) || prefixes.some((prefix) => plain.startsWith(prefix));
  };
}

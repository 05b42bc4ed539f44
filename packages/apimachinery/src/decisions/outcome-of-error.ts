import { causesOf, messageOf } from "../objects/errors/message.ts";
import { StatusError } from "../objects/errors/status-error.ts";
import { errorCode } from "../process/narrowing/error-code.ts";
import { type Outcome, shortened } from "./decision-log.ts";

/** An error that carries a decision for diagnostics in addition to its message. */
export class DecidedError extends Error {
  readonly outcome: Outcome;

  constructor(message: string, outcome: Outcome, options?: ErrorOptions) {
    super(message, options);
    this.outcome = outcome;
  }
}

interface Rule {
  readonly matches: (status: StatusError) => boolean;
  readonly verdict: "refused" | "failed";
  readonly reason: string;
  readonly remedy?: string;
}

const says =
  (text: RegExp) =>
  ({ message }: StatusError): boolean =>
    text.test(message);

/** The first that matches counts. */
const rules: readonly Rule[] = [
  {
    matches: ({ status }) => status.details?.causes?.some(({ reason }) => reason === "NamespaceTerminating") === true,
    verdict: "refused",
    reason: "NamespaceTerminating",
  },
  {
    matches: says(/exceeded quota|failed quota/),
    verdict: "refused",
    reason: "QuotaExceeded",
    remedy: "raise the ResourceQuota, or use less in the namespace",
  },
  {
    matches: says(/admission webhook .* denied the request/),
    verdict: "refused",
    reason: "WebhookDenied",
    remedy: "meet the webhook's rule, which its message names",
  },
  {
    matches: says(/failed calling webhook|failed to call webhook/),
    verdict: "failed",
    reason: "WebhookFailed",
    remedy: "repair the webhook's service, or change its failurePolicy or scope",
  },
  {
    matches: says(/violates PodSecurity|unable to validate against any pod security policy/),
    verdict: "refused",
    reason: "PodSecurityViolated",
    remedy: "change the pod's security context, or the policy of the namespace",
  },
  { matches: ({ reason }) => reason === "Forbidden", verdict: "refused", reason: "Forbidden" },
  { matches: ({ reason }) => reason === "Invalid", verdict: "refused", reason: "Invalid" },
  { matches: ({ reason }) => reason === "TooManyRequests", verdict: "refused", reason: "TooManyRequests" },
];

/** The decision for a failure that is retried: refused by a rule, or failed, with the messages of all causes, shortened. */
export function outcomeOfError(err: unknown, nextTryMs?: number): Outcome {
  const decided = findCause(err, (cause) => cause instanceof DecidedError);
  if (decided instanceof DecidedError) return { ...decided.outcome, ...(nextTryMs !== undefined && { nextTryMs }) };
  const status = findCause(err, (cause) => cause instanceof StatusError);
  const summary = shortened(causesOf(err)); // webhooks answer with texts of up to 3 MB
  if (!(status instanceof StatusError)) return { verdict: "failed", reason: codeReason(err), nextTryMs, description: summary };
  const rule = rules.find(({ matches }) => matches(status));
  const { verdict, reason, remedy }: Omit<Rule, "matches"> = rule ?? {
    verdict: "failed",
    reason: shortened(status.reason) || "Failed",
  };
  return { verdict, reason, nextTryMs, description: { summary, ...(remedy !== undefined && { remedy }) } };
}

function findCause(err: unknown, matches: (cause: unknown) => boolean): unknown {
  for (let cause = err, depth = 0; cause !== undefined && depth < 10; cause = cause instanceof Error ? cause.cause : undefined) {
    if (matches(cause)) return cause;
    depth++;
  }
  return undefined;
}

const connectionCodes = /ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN/;

function codeReason(err: unknown): string {
  const unreachable = findCause(err, (cause) => connectionCodes.test(`${errorCode(cause)} ${messageOf(cause)}`));
  return unreachable === undefined ? "Failed" : "Unreachable";
}

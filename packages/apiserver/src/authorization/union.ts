/**
 * Chains authorizers; the first one that allows or denies decides. Without a decision the request is not allowed.
 * Source: k8s.io/apiserver pkg/authorization/union/union.go
 */
import { errorOf } from "@coxswain/apimachinery/process/narrowing/error-of";
import { privilegedGroup } from "../request/user-names.ts";
import type { Attributes, Authorizer, Decision } from "./authorizer.ts";

export function unionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  return (attributes) => authorizeFrom(authorizers, 0, attributes, [], []);
}

/** Synchronous while the authorizers are: most requests are decided from memory, without a promise. */
function authorizeFrom(
  authorizers: readonly Authorizer[],
  from: number,
  attributes: Attributes,
  reasons: string[],
  errors: Error[],
): Decision | Promise<Decision> {
  for (let i = from; i < authorizers.length; i++) {
    let decision: Decision | Promise<Decision>;
    try {
      decision = authorizers[i]!(attributes);
    } catch (err) {
      decision = { decision: "no-opinion", error: errorOf(err) };
    }
    if (decision instanceof Promise) {
      return decision
        .catch((err: Error): Decision => ({ decision: "no-opinion", error: err }))
        .then((made) => note(made, reasons, errors) ?? authorizeFrom(authorizers, i + 1, attributes, reasons, errors));
    }
    const final = note(decision, reasons, errors);
    if (final !== undefined) return final;
  }
  const error =
    errors.length === 0
      ? undefined
      : errors.length === 1
        ? errors[0]
        : new AggregateError(errors, errors.map((err) => err.message).join(", "));
  return {
    decision: "no-opinion",
    ...(reasons.length === 0 ? {} : { reason: reasons.join("\n") }),
    ...(error === undefined ? {} : { error }),
  };
}

function note(decision: Decision, reasons: string[], errors: Error[]): Decision | undefined {
  if (decision.decision !== "no-opinion") return decision;
  if (decision.error !== undefined) errors.push(decision.error);
  if (decision.reason) reasons.push(decision.reason);
  return undefined;
}

// Source: k8s.io/apiserver pkg/authorization/authorizerfactory/builtin.go
export const alwaysAllow: Authorizer = () => ({ decision: "allow" });
/** Allows nothing. It has no opinion instead of denying, so that a later authorizer may still allow the request. */
export const alwaysDeny: Authorizer = () => ({ decision: "no-opinion", reason: "Everything is forbidden." });

/** Allows system:masters everything, independent of the stored policy, which may not be loaded yet. */
export const privilegedGroups: Authorizer = ({ user }) =>
  user.groups.includes(privilegedGroup) ? { decision: "allow" } : { decision: "no-opinion" };

/**
 * May they? Refusals carry upstream's sentence, which clients and people read.
 * Source: k8s.io/apiserver pkg/endpoints/filters/authorization.go, handlers/responsewriters/errors.go
 */
import { forbidden, internalError, type StatusError } from "@coxswain/apimachinery/errors/status-error";
import type { Attributes, Authorizer, Decision } from "../authorization/authorizer.ts";
import type { AuditTrail } from "../request/audit-trail.ts";
import type { UserInfo } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";
import type { Filter } from "./filter.ts";

export function authorization(authorize: Authorizer): Filter {
  return (request, next) => {
    const attributes = attributesOf(request.user, request.info);
    const decision = authorize(attributes);
    if (decision instanceof Promise)
      return decision.then((made) => check(attributes, made, request.audit)).then(() => next(request));
    check(attributes, decision, request.audit);
    return next(request);
  };
}

export function attributesOf(user: UserInfo, info: RequestInfo): Attributes {
  return {
    user,
    verb: info.verb,
    isResourceRequest: info.isResourceRequest,
    namespace: info.namespace,
    group: info.group,
    version: info.version,
    resource: info.resource,
    subresource: info.subresource,
    name: info.name,
    path: info.path,
  };
}

function check(attributes: Attributes, decision: Decision, audit: AuditTrail | undefined): void {
  if (decision.decision === "allow") {
    annotate(audit, "allow", decision.reason ?? "");
    return;
  }
  // Somebody could not be asked: that is our trouble, and a no all the same.
  if (decision.error !== undefined) {
    audit?.annotate(reasonAnnotation, "internal error");
    throw internalError(decision.error);
  }
  annotate(audit, "forbid", decision.reason ?? "");
  throw forbiddenError(attributes, decision.reason ?? "");
}

const reasonAnnotation = "authorization.k8s.io/reason";

function annotate(audit: AuditTrail | undefined, decision: string, reason: string): void {
  audit?.annotate("authorization.k8s.io/decision", decision);
  audit?.annotate(reasonAnnotation, reason);
}

export function forbiddenError(attributes: Attributes, reason: string): StatusError {
  const sentence = escapeHtml(forbiddenMessage(attributes));
  return forbidden(
    { group: attributes.group, resource: attributes.resource },
    attributes.name,
    reason === "" ? sentence : `${sentence}: ${reason}`,
  );
}

function forbiddenMessage(attributes: Attributes): string {
  const user = quoteGo(attributes.user.name);
  if (!attributes.isResourceRequest) return `User ${user} cannot ${attributes.verb} path ${quoteGo(attributes.path)}`;
  const resource = attributes.subresource === "" ? attributes.resource : `${attributes.resource}/${attributes.subresource}`;
  const what = `User ${user} cannot ${attributes.verb} resource ${quoteGo(resource)} in API group ${quoteGo(attributes.group)}`;
  return attributes.namespace === ""
    ? `${what} at the cluster scope`
    : `${what} in the namespace ${quoteGo(attributes.namespace)}`;
}

/** Go's %q for printable text. */
function quoteGo(text: string): string {
  return JSON.stringify(text);
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

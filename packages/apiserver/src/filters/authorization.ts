/**
 * May they? Refusals carry upstream's sentence, which clients and people read.
 * Source: k8s.io/apiserver pkg/endpoints/filters/authorization.go, handlers/responsewriters/errors.go
 */
import { forbidden, internalError, type StatusError } from "@coxswain/apimachinery/errors/status-error";
import type { Attributes, Authorizer, Decision } from "../authorization/authorizer.ts";
import type { UserInfo } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";
import type { Filter } from "./filter.ts";

export function authorization(authorize: Authorizer): Filter {
  return (request, next) => {
    const attributes = attributesOf(request.user, request.info);
    const decision = authorize(attributes);
    if (decision instanceof Promise) return decision.then((made) => check(attributes, made)).then(() => next(request));
    check(attributes, decision);
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

function check(attributes: Attributes, decision: Decision): void {
  if (decision.decision === "allow") return;
  // Somebody could not be asked: that is our trouble, and a no all the same.
  if (decision.error !== undefined) throw internalError(decision.error);
  throw forbiddenError(attributes, decision.reason ?? "");
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

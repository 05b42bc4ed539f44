/**
 * Authorizes requests. Error messages match upstream's text, which clients and users read.
 * Source: k8s.io/apiserver pkg/endpoints/filters/authorization.go, handlers/responsewriters/errors.go
 */
import { forbidden, type StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote, goQuoteName } from "@coxswain/apimachinery/objects/meta/go-quote";
import { answerInternalError, escapeHtml } from "@coxswain/apimachinery/serving/plain-error";
import type { Attributes, Authorizer, Decision } from "../authorization/authorizer.ts";
import type { AuditTrail } from "../request/audit-trail.ts";
import type { UserInfo } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";
import type { ServerRequest } from "../request/server-request.ts";
import type { Filter } from "./filter.ts";

/** Calls the next filter only when the authorizer allows the request. @throws Forbidden */
export function authorization(authorize: Authorizer): Filter {
  return (request, next) => {
    const attributes = attributesOf(request.user, request.info);
    const decision = authorize(attributes);
    const goOn = (made: Decision): Promise<void> | void => {
      if (check(attributes, made, request)) return next(request);
      // An authorizer failed, e.g. a webhook: the request is denied with 500.
      answerInternalError(request.exchange, made.error!);
    };
    return decision instanceof Promise ? decision.then(goOn) : goOn(decision);
  };
}

function attributesOf(user: UserInfo, info: RequestInfo): Attributes {
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

/** @returns false when the decision is an error @throws Forbidden */
function check(attributes: Attributes, decision: Decision, { audit, exchange }: ServerRequest): boolean {
  if (decision.decision === "allow") {
    annotate(audit, "allow", decision.reason ?? "");
    return true;
  }
  if (decision.error !== undefined) {
    audit?.annotate(reasonAnnotation, "internal error");
    return false;
  }
  annotate(audit, "forbid", decision.reason ?? "");
  // The message contains text from the client.
  exchange.setHeader("x-content-type-options", "nosniff");
  throw forbiddenError(attributes, decision.reason ?? "");
}

const reasonAnnotation = "authorization.k8s.io/reason";

function annotate(audit: AuditTrail | undefined, decision: string, reason: string): void {
  audit?.annotate("authorization.k8s.io/decision", decision);
  audit?.annotate(reasonAnnotation, reason);
}

/** The Forbidden error with upstream's message. @param reason from the authorizer; "": none */
export function forbiddenError(attributes: Attributes, reason: string): StatusError {
  const sentence = escapeHtml(forbiddenMessage(attributes));
  return forbidden(
    { group: attributes.group, resource: attributes.resource },
    attributes.name,
    reason === "" ? sentence : `${sentence}: ${reason}`,
  );
}

function forbiddenMessage(attributes: Attributes): string {
  const user = goQuoteName(attributes.user.name);
  if (!attributes.isResourceRequest) return `User ${user} cannot ${attributes.verb} path ${goQuote(attributes.path)}`;
  const resource = attributes.subresource === "" ? attributes.resource : `${attributes.resource}/${attributes.subresource}`;
  const what = `User ${user} cannot ${attributes.verb} resource ${goQuote(resource)} in API group ${goQuote(attributes.group)}`;
  return attributes.namespace === ""
    ? `${what} at the cluster scope`
    : `${what} in the namespace ${goQuote(attributes.namespace)}`;
}

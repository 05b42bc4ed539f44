import { readFileSync } from "node:fs";

/** Fields of an audit event used by tests. */
export interface AuditEvent {
  requestReceivedTimestamp: string;
  verb: string;
  requestURI: string;
  userAgent?: string;
  user: { username: string; groups?: string[] };
  impersonatedUser?: { username: string };
  responseStatus?: { code?: number };
  annotations?: Record<string, string>;
  objectRef?: { resource: string; subresource?: string; apiGroup?: string; namespace?: string; name?: string };
}

/** Allowed users of each daemon, by prefix of its user agent. */
export const daemonUsers: Readonly<Record<string, RegExp>> = {
  "kube-controller-manager": /^system:(kube-controller-manager|serviceaccount:kube-system:[a-z-]+)$/,
  "kube-scheduler": /^system:kube-scheduler$/,
  kubelet: /^system:node:[a-z0-9.-]+$/,
  "coxswain-services": /^system:coxswain-services:[a-z0-9.-]+$/,
};

export const daemonOf = (event: AuditEvent): string | undefined =>
  Object.keys(daemonUsers).find((name) => event.userAgent?.startsWith(`${name}/`));

/** All events since the API server started. */
export function readAuditLog(file: string): AuditEvent[] {
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as AuditEvent);
}

/**
 * Whether the request was rejected by the authorizer or NodeRestriction. A terminating namespace also rejects a kubelet's
 * events and tokens, which is expected and ignored.
 */
export function isRefused({ annotations = {}, responseStatus, user, verb, requestURI }: AuditEvent): boolean {
  if (annotations["authorization.k8s.io/decision"] === "forbid" || responseStatus?.code === 401) return true;
  const isAgent = user.groups?.includes("system:nodes") === true;
  const mayBeGoing = verb === "create" && requestURI.startsWith("/api/v1/namespaces/");
  return responseStatus?.code === 403 && isAgent && !mayBeGoing;
}

/** User, verb, path and authorization reason, for failure messages. */
export function summaryOf({ user, verb, requestURI, annotations }: AuditEvent): string {
  return `${user.username} ${verb} ${requestURI} ${annotations?.["authorization.k8s.io/reason"] ?? ""}`;
}

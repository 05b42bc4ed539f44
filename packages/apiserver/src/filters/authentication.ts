import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { StatusError, unauthorized } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Authenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import { headerValues, unescapeExtraKey } from "@coxswain/apimachinery/serving/authentication/header-values";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { answerInternalError } from "@coxswain/apimachinery/serving/plain-error";
import type { Attributes, Authorizer } from "../authorization/authorizer.ts";
import type { UserInfo } from "../request/context.ts";
import type { ServerRequest } from "../request/server-request.ts";
import {
  allAuthenticated,
  allUnauthenticated,
  anonymousName,
  serviceAccountGroups,
  splitServiceAccountUsername,
} from "../request/user-names.ts";
import { forbiddenError } from "./authorization.ts";
import type { Filter } from "./filter.ts";
import type { RequestMetrics } from "./metrics.ts";

/**
 * Authenticates requests. A 401 response does not contain the reason; the log does.
 * Source: k8s.io/apiserver pkg/endpoints/filters/authentication.go
 */

interface AuthenticationOptions {
  clock: Clock;
  authenticate: Authenticator;
  /** The audiences of which a credential must have at least one; empty: not checked. */
  apiAudiences: readonly string[];
  metrics: RequestMetrics;
  log: Logger;
  /** Called before a request is rejected with 401. */
  onRefused?: ((request: ServerRequest) => Promise<void>) | undefined;
}

/** Counts an attempt that began at `startedMs`. */
type Ended = (startedMs: number) => void;

/** Sets `request.user`. @throws Unauthorized; StatusErrors of the backend with code 500 or above pass unchanged */
export function authentication(options: AuthenticationOptions): Filter {
  const { metrics, log } = options;
  // Cast: one for each of the three.
  const [success, failure, error] = ["success", "failure", "error"].map((result) => {
    const attempts = metrics.authenticationAttempts.labels(result);
    const duration = metrics.authenticationDuration.labels(result);
    return (startedMs: number): void => {
      attempts.inc();
      duration.observe((options.clock.monotonic() - startedMs) / 1000);
    };
  }) as [Ended, Ended, Ended];
  const refusal = async (request: ServerRequest): Promise<Error> => {
    await options.onRefused?.(request);
    return unauthorized("Unauthorized");
  };
  return async (request, next) => {
    const startedMs = options.clock.monotonic();
    const result = await options.authenticate(request.exchange).catch(async (err: unknown) => {
      error(startedMs);
      // The backend that verifies tokens may be down, which is not the client's fault.
      if (err instanceof StatusError && err.code >= 500) throw err;
      log.warn("Unable to authenticate the request", { err: messageOf(err) });
      throw await refusal(request);
    });
    if (result === undefined) {
      failure(startedMs);
      throw await refusal(request);
    }
    if (result.audiences !== undefined && options.apiAudiences.length > 0) {
      if (!result.audiences.some((audience) => options.apiAudiences.includes(audience))) {
        error(startedMs);
        throw await refusal(request);
      }
    }
    success(startedMs);
    metrics.authenticatedUserRequests.labels(compressUser(result.user.name)).inc();
    // Credentials for this server must not be forwarded to proxied servers.
    delete request.exchange.headers.authorization;
    request.user = result.user;
    request.credentialNotes = result.auditAnnotations;
    return next(request);
  };
}

const namedInMetrics: ReadonlySet<string> = new Set([
  ...["admin", "client", "kube_proxy", "kubelet"],
  "system:serviceaccount:kube-system:default",
]);

/** Bounds the number of metric series, and keeps user names out of them. Source: pkg/endpoints/filters/metrics.go */
function compressUser(name: string): string {
  if (namedInMetrics.has(name)) return name;
  return name.includes("@") ? "email_id" : "other";
}

/**
 * Impersonation (`kubectl --as`): the user must be authorized to impersonate each part of the requested identity. The request
 * continues with exactly that identity.
 * Source: k8s.io/apiserver pkg/endpoints/filters/impersonation.go
 */

const userHeader = "impersonate-user";
const groupHeader = "impersonate-group";
const uidHeader = "impersonate-uid";
const extraPrefix = "impersonate-extra-";

interface Impersonated {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: ReadonlyMap<string, readonly string[]>;
  /** All parts but the user, printed as Go prints their object references; for the error text. */
  readonly parts: readonly string[];
}

/** Replaces `request.user` by the impersonated user and removes the impersonation headers. @throws Forbidden */
export function impersonation(authorize: Authorizer): Filter {
  return (request, next) => {
    const impersonated = readHeaders(request.exchange);
    if (impersonated === undefined) return next(request);
    if (impersonated.user === "") {
      if (impersonated.parts.length === 0) return next(request);
      answerInternalError(
        request.exchange,
        new Error(`requested [${impersonated.parts.join(" ")}] without impersonating a user`),
      );
      return;
    }
    return impersonate(request.user, impersonated, authorize).then((user) => {
      request.user = user;
      request.audit?.impersonated(user);
      for (const name of Object.keys(request.exchange.headers)) {
        if (name.startsWith("impersonate-")) delete request.exchange.headers[name];
      }
      return next(request);
    });
  };
}

function readHeaders(exchange: Exchange): Impersonated | undefined {
  let any = false;
  const extra = new Map<string, string[]>();
  for (const name in exchange.headers) {
    if (!name.startsWith("impersonate-")) continue;
    any = true;
    if (!name.startsWith(extraPrefix)) continue;
    const key = unescapeExtraKey(name.slice(extraPrefix.length));
    // Different spellings of one key are merged.
    extra.set(key, [...(extra.get(key) ?? []), ...headerValues(exchange, name)]);
  }
  if (!any) return undefined;
  const groups = headerValues(exchange, groupHeader);
  const uid = headerValues(exchange, uidHeader)[0] ?? "";
  const parts = [
    ...groups.map((group) => `{Group  ${group}    }`),
    ...[...extra].flatMap(([key, values]) => values.map((value) => `{UserExtra  ${value}  ${reviewVersion}  ${key}}`)),
    ...(uid === "" ? [] : [`{UID  ${uid}  ${reviewVersion}  }`]),
  ];
  return { user: headerValues(exchange, userHeader)[0] ?? "", uid, groups, extra, parts };
}

const reviewVersion = "authentication.k8s.io/v1";

async function impersonate(requestor: UserInfo, impersonated: Impersonated, authorize: Authorizer): Promise<UserInfo> {
  const serviceAccount = splitServiceAccountUsername(impersonated.user);
  const base: Attributes = {
    user: requestor,
    verb: "impersonate",
    isResourceRequest: true,
    namespace: "",
    group: "",
    version: "",
    resource: "users",
    subresource: "",
    name: impersonated.user,
    path: "",
  };
  const requests: Attributes[] = [
    serviceAccount === undefined
      ? base
      : { ...base, resource: "serviceaccounts", namespace: serviceAccount.namespace, name: serviceAccount.name },
    ...impersonated.groups.map((group) => ({ ...base, resource: "groups", name: group })),
  ];
  for (const [key, values] of impersonated.extra) {
    for (const value of values) {
      requests.push({
        ...base,
        group: "authentication.k8s.io",
        version: "v1",
        resource: "userextras",
        subresource: key,
        name: value,
      });
    }
  }
  if (impersonated.uid !== "") {
    requests.push({ ...base, group: "authentication.k8s.io", version: "v1", resource: "uids", name: impersonated.uid });
  }
  for (const attributes of requests) {
    const decision = await authorize(attributes);
    if (decision.decision !== "allow") throw forbiddenError(attributes, decision.reason ?? "");
  }
  return asUser(impersonated, serviceAccount?.namespace);
}

function asUser(impersonated: Impersonated, serviceAccountNamespace: string | undefined): UserInfo {
  const groups = [...impersonated.groups];
  if (groups.length === 0 && serviceAccountNamespace !== undefined) groups.push(...serviceAccountGroups(serviceAccountNamespace));
  if (impersonated.user === anonymousName) {
    if (!groups.includes(allUnauthenticated)) groups.push(allUnauthenticated);
  } else if (!groups.includes(allAuthenticated) && !groups.includes(allUnauthenticated)) {
    groups.push(allAuthenticated);
  }
  return {
    name: impersonated.user,
    groups,
    ...(impersonated.uid === "" ? {} : { uid: impersonated.uid }),
    ...(impersonated.extra.size === 0 ? {} : { extra: Object.fromEntries(impersonated.extra) }),
  };
}

import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { badRequest, conflict, internalError, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { TokenRequest } from "@coxswain/apimachinery/objects/schema/kinds/authentication/v1";
import type { Pod, Secret, ServiceAccount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { SubresourceCall, TokenIssuer } from "../../generic/resource.ts";

const shortestSeconds = 10 * 60;
const longestSeconds = 2 ** 32;
const defaultSeconds = 60 * 60;
/** Lifetime requested by the ServiceAccount admission plugin; such tokens are extended for clients that do not reload them. */
const warnAfterSeconds = 60 * 60 + 7;
const extendedSeconds = 365 * 24 * 60 * 60;

/**
 * POST serviceaccounts/{name}/token: issues a signed token, optionally bound to a pod or secret. The metadata.name of the
 * request is ignored. The request is validated before the account is read.
 * Source: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go
 */
export async function createToken(call: SubresourceCall<TokenRequest>): Promise<TokenRequest> {
  const request = call.body;
  if (!request) throw badRequest("not a TokenRequest object");
  const issuer = call.services.tokenIssuer;
  if (issuer === undefined) throw badRequest("the server does not issue service account tokens: it has no signing key");
  request.spec ??= { audiences: [] };
  request.spec.expirationSeconds ??= defaultSeconds;
  await call.admit(request, undefined);
  const errors = validateTokenRequest(request);
  if (errors.length > 0) throw invalid({ group: "authentication.k8s.io", kind: "TokenRequest" }, "", errors);
  // Both reads are current, as upstream's: another server may just have created the account or the pod.
  const account: ServiceAccount = (await call.services.store("", "serviceaccounts").get(call.namespace, call.name, {})).object();
  const bound = await boundObject(call, request, account);
  if (!request.spec.audiences?.length) request.spec.audiences = [...issuer.defaultAudiences];
  const { claims, expiresMs, seconds } = tokenClaims(request, account, bound, issuer, call.services.now());
  request.spec.expirationSeconds = seconds;
  // Also in a dry run: nothing is stored.
  const token = await issuer.sign(claims);
  return { ...request, status: { token, expirationTimestamp: formatTime(expiresMs) } };
}

/**
 * Validates the requested lifetime, 10 minutes to 2^32 seconds; `--service-account-max-token-expiration` shortens it later.
 * Source: pkg/apis/authentication/validation/validation.go
 */
export function validateTokenRequest(request: TokenRequest): FieldError[] {
  const seconds = request.spec?.expirationSeconds ?? 0;
  const errors: FieldError[] = [];
  if (seconds < shortestSeconds)
    errors.push(invalidValue("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"));
  if (seconds > longestSeconds)
    errors.push(invalidValue("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"));
  return errors;
}

interface Bound {
  kind: "pod" | "secret";
  name: string;
  uid: string;
}

async function boundObject(
  call: SubresourceCall<TokenRequest>,
  request: TokenRequest,
  account: ServiceAccount,
): Promise<Bound | undefined> {
  const reference = request.spec?.boundObjectRef;
  if (!reference) return undefined;
  const { kind = "", apiVersion = "", name = "", uid = "" } = reference;
  const { group, version } = parseGroupVersion(apiVersion) ?? { group: "", version: "" };
  if (group !== "" || (kind !== "Pod" && kind !== "Secret")) {
    throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`);
  }
  const resource = kind === "Pod" ? "pods" : "secrets";
  const object = (await call.services.store("", resource).get(call.namespace, name, {})).object<Pod | Secret>();
  if ("spec" in object && object.spec.serviceAccountName !== account.metadata.name) {
    throw badRequest(
      `cannot bind token for serviceaccount "${account.metadata.name}" to pod running with different serviceaccount name.`,
    );
  }
  if (uid !== "" && uid !== object.metadata.uid) {
    throw conflict(
      { group, resource: kind },
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  if (object.metadata.uid === undefined)
    throw internalError(new Error(`${kind} ${call.namespace}/${name} of boundObjectRef has no uid`));
  return { kind: kind === "Pod" ? "pod" : "secret", name, uid: object.metadata.uid };
}

/** Claims of the token. Pure function. */
function tokenClaims(
  request: TokenRequest,
  account: ServiceAccount,
  bound: Bound | undefined,
  issuer: Pick<TokenIssuer, "issuer" | "defaultAudiences" | "maxExpirationSeconds" | "extendExpiration">,
  nowMs: number,
): { claims: Record<string, unknown>; expiresMs: number; seconds: number } {
  const seconds = Math.min(
    request.spec?.expirationSeconds ?? defaultSeconds,
    issuer.maxExpirationSeconds ?? Number.MAX_SAFE_INTEGER,
  );
  const now = Math.floor(nowMs / 1000);
  const kubernetes: Record<string, unknown> = {
    namespace: account.metadata.namespace ?? "",
    serviceaccount: { name: account.metadata.name ?? "", uid: account.metadata.uid ?? "" },
  };
  if (bound) kubernetes[bound.kind] = { name: bound.name, uid: bound.uid };
  let signedSeconds = seconds;
  const audiences = request.spec?.audiences ?? [];
  const forThisServer = audiences.every((audience) => issuer.defaultAudiences.includes(audience));
  if (issuer.extendExpiration && bound?.kind === "pod" && seconds === warnAfterSeconds && forThisServer) {
    kubernetes.warnafter = now + seconds;
    signedSeconds = extendedSeconds;
  }
  const claims: Record<string, unknown> = {
    aud: [...audiences],
    exp: now + signedSeconds,
    iat: now,
    iss: issuer.issuer,
    "kubernetes.io": kubernetes,
    nbf: now,
    sub: `system:serviceaccount:${account.metadata.namespace}:${account.metadata.name}`,
  };
  return { claims, expiresMs: (now + seconds) * 1000, seconds };
}

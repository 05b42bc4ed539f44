/**
 * Authenticates bearer tokens by TokenReview against a remote service. A failed call is an error, so that the request is
 * rejected instead of continuing as anonymous.
 * Source: k8s.io/apiserver plugin/pkg/authenticator/token/webhook/webhook.go
 */

import type { TokenAuthenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { UserInfo } from "../request/context.ts";
import type { ReviewWebhook } from "./review-webhook.ts";

interface WebhookTokenOptions {
  readonly review: ReviewWebhook;
  /** Version of authentication.k8s.io: `v1` or `v1beta1`. */
  readonly version: string;
  /** Audiences assumed when the response lists none: those of this API server. */
  readonly implicitAudiences: readonly string[];
}

/** @throws Error for an unsupported version. */
export function checkTokenWebhookVersion(version: string): void {
  if (version === "v1" || version === "v1beta1") return;
  throw new Error(
    `unsupported authentication webhook version ${JSON.stringify(version)}, supported versions are "v1", "v1beta1"`,
  );
}

/** The authenticator throws Error when the call fails or the response contains an error. */
export function webhookToken({ review, version, implicitAudiences }: WebhookTokenOptions): TokenAuthenticator {
  const apiVersion = `authentication.k8s.io/${version}`;
  return async (token, wanted) => {
    // Cast: the reviews of both versions have these fields; the types name one.
    const status = await review({
      kind: "TokenReview",
      apiVersion,
      metadata: { creationTimestamp: null },
      spec: { token, ...(wanted === undefined ? {} : { audiences: wanted }) },
      status: { user: {} },
    } as never);
    let granted: string[] | undefined;
    if (wanted !== undefined) {
      const named = stringsOf(status["audiences"]);
      const good = named.length > 0 ? named : implicitAudiences;
      granted = wanted.filter((audience) => good.includes(audience));
      if (granted.length === 0) return undefined;
    }
    if (status["authenticated"] !== true) {
      if (typeof status["error"] === "string" && status["error"] !== "") throw new Error(status["error"]);
      return undefined;
    }
    return { user: userOf(status["user"]), ...(granted === undefined ? {} : { audiences: granted }) };
  };
}

function userOf(value: unknown): UserInfo {
  // Cast: an object, whose fields are checked below.
  const user = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const { username, uid, groups, extra } = user;
  const entries =
    typeof extra !== "object" || extra === null
      ? []
      : Object.entries(extra).map(([key, values]): [string, string[]] => [key, stringsOf(values)]);
  return {
    name: typeof username === "string" ? username : "",
    ...(typeof uid === "string" && uid !== "" ? { uid } : {}),
    groups: stringsOf(groups),
    ...(entries.length === 0 ? {} : { extra: Object.fromEntries(entries) }),
  };
}

function stringsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/**
 * Bootstrap tokens of joining nodes, `<6 characters>.<16 characters>`, stored in Secrets of type
 * bootstrap.kubernetes.io/token.
 * Source: plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go
 */
import { timingSafeEqual } from "node:crypto";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { TokenAuthenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { ServiceAccountGetter } from "./service-account.ts";

const form = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const groupForm = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;

export function bootstrapToken(getter: ServiceAccountGetter, clock: Clock): TokenAuthenticator {
  return async (token) => {
    const match = form.exec(token);
    if (match === null) return undefined;
    const [, id = "", secretPart = ""] = match;
    const secret: { metadata: { deletionTimestamp?: string | null }; type?: string; data?: Record<string, string> } | undefined =
      await getter.get("secrets", "kube-system", `bootstrap-token-${id}`, false);
    if (secret === undefined || secret.metadata.deletionTimestamp || secret.type !== "bootstrap.kubernetes.io/token")
      return undefined;
    const data = (key: string): string => Buffer.from(secret.data?.[key] ?? "", "base64").toString("utf8");
    if (!sameText(data("token-secret"), secretPart) || data("token-id") !== id) return undefined;
    const expiration = data("expiration");
    if (expiration !== "") {
      const expiresMs = parseTime(expiration);
      if (expiresMs === undefined || clock.now() >= expiresMs) return undefined;
    }
    if (data("usage-bootstrap-authentication") !== "true") return undefined;
    const extra = data("auth-extra-groups");
    const groups = extra === "" ? [] : extra.split(",");
    if (!groups.every((group) => groupForm.test(group))) return undefined;
    return { user: { name: `system:bootstrap:${id}`, groups: [...new Set(["system:bootstrappers", ...groups])].sort() } };
  };
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

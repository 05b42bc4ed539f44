import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/**
 * Whether the Secret is a bootstrap token for joining nodes: `bootstrap-token-<id>` in kube-system.
 * Source: k8s.io/cluster-bootstrap
 */
export function isBootstrapToken({ metadata, type }: Secret): boolean {
  return type === "bootstrap.kubernetes.io/token" && metadata.namespace === "kube-system";
}

const nameForm = /^bootstrap-token-([a-z0-9]{6})$/;

/**
 * Returns id and secret of a valid token with signing usage; undefined for any other Secret.
 * Source: pkg/controller/bootstrap/util.go
 */
export function signingToken(secret: Secret, now: number): { id: string; secret: string } | undefined {
  const id = dataOf(secret, "token-id");
  const text = dataOf(secret, "token-secret");
  if (!isBootstrapToken(secret) || nameForm.exec(secret.metadata.name ?? "")?.[1] !== id || text === "") return undefined;
  if (msUntilExpiry(secret, now) === 0 || dataOf(secret, "usage-bootstrap-signing") !== "true") return undefined;
  return { id, secret: text };
}

/** Remaining lifetime in ms: 0 when expired or malformed, undefined without an expiration. */
export function msUntilExpiry(secret: Secret, now: number): number | undefined {
  const expiration = dataOf(secret, "expiration");
  if (expiration === "") return undefined;
  return Math.max(0, (parseTime(expiration) ?? 0) - now);
}

function dataOf({ data }: Secret, key: string): string {
  return data !== undefined && Object.hasOwn(data, key) ? Buffer.from(data[key] ?? "", "base64").toString("utf8") : "";
}

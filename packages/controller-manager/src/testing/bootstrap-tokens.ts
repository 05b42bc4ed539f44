import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** A signing token without expiration; `data` overrides and adds keys. */
export function aBootstrapToken(id: string, data: Record<string, string> = {}): Secret {
  const all = { "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", ...data };
  return {
    metadata: { name: `bootstrap-token-${id}`, namespace: "kube-system", uid: `uid-of-${id}` },
    type: "bootstrap.kubernetes.io/token",
    data: Object.fromEntries(Object.entries(all).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
  };
}

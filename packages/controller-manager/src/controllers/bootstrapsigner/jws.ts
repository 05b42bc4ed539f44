import { createHmac } from "node:crypto";

/**
 * Signs `content` so that holders of the token can verify it: a compact JWS with HS256 and detached payload.
 * Source: k8s.io/cluster-bootstrap token/jws/jws.go; RFC 7515 appendix F
 */
export function detachedSignature(content: string, token: { readonly id: string; readonly secret: string }): string {
  const header = Buffer.from(JSON.stringify({ alg: "HS256", kid: token.id })).toString("base64url");
  const signed = `${header}.${Buffer.from(content).toString("base64url")}`;
  return `${header}..${createHmac("sha256", token.secret).update(signed).digest("base64url")}`;
}

import { createHmac } from "node:crypto";

/**
 * A signature of `content` by which someone who has only the token knows that it comes from this cluster: a compact JWS
 * with HS256 whose middle part is left out.
 * Source: k8s.io/cluster-bootstrap token/jws/jws.go; RFC 7515 appendix F
 */
export function detachedSignature(content: string, token: { readonly id: string; readonly secret: string }): string {
  const header = Buffer.from(JSON.stringify({ alg: "HS256", kid: token.id })).toString("base64url");
  const signed = `${header}.${Buffer.from(content).toString("base64url")}`;
  return `${header}..${createHmac("sha256", token.secret).update(signed).digest("base64url")}`;
}

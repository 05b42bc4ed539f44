/**
 * Redirects in a kubelet's response to an upgrade request (feature gate StreamingProxyRedirects): the container runtime has a
 * separate streaming server, and this server follows the redirect on behalf of the client.
 * Source: k8s.io/apimachinery pkg/util/net/http.go ConnectWithRedirects
 */
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { Dial } from "./dial.ts";

export interface Redirects {
  /** Only follow redirects to the original host (feature gate ValidateProxyRedirects). */
  readonly sameHost: boolean;
  /** @throws BadRequest for a forbidden address */
  dial(target: ConnectTarget): Promise<Dial>;
}

/** Maximum number of redirects; another one is an error. */
export const mostRedirects = 9;

/**
 * @param head of a 302 response, up to its empty line
 * @param from target of the redirected request
 * @param first URL of the original request
 * @throws Error with upstream's text for a redirect that is not followed
 */
export function redirectTarget(head: string, from: ConnectTarget, first: URL, sameHost: boolean): ConnectTarget {
  const location = /^location:(.*)$/im.exec(head)?.[1]?.trim() ?? "";
  if (location === "") throw new Error("302 response missing Location header");
  const url = URL.parse(location, from.url);
  if (url === null) throw new Error(`malformed Location header: parse ${JSON.stringify(location)}`);
  if (sameHost && url.hostname !== first.hostname) {
    throw new Error(`hostname mismatch: expected ${bare(first)}, found ${bare(url)}`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new Error(`error dialing backend: unknown scheme: ${url.protocol.slice(0, -1)}`);
  return { ...from, url };
}

const bare = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

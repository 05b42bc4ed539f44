/**
 * Redirects that a kubelet answers a request for an upgrade with (gate StreamingProxyRedirects): its container runtime
 * has a streaming server of its own, and this server goes there in its client's place.
 * Source: k8s.io/apimachinery pkg/util/net/http.go ConnectWithRedirects
 */
import type { ConnectTarget } from "../registry/generic/subresource.ts";
import type { Dial } from "./dial.ts";

export interface Redirects {
  /** Nobody is sent to another host than the first (gate ValidateProxyRedirects). */
  readonly sameHost: boolean;
  /** @throws BadRequest for an address that nobody is to be sent to */
  dial(target: ConnectTarget): Promise<Dial>;
}

/** One more is an error. */
export const mostRedirects = 9;

/**
 * @param head of a 302, up to its empty line
 * @param from what was asked now
 * @param first what was asked at first
 * @throws Error in upstream's words for a redirect that is not followed
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

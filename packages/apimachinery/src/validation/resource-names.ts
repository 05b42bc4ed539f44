import { isQualifiedName } from "./qualified-name.ts";

/** Names of what containers ask for and nodes have. Source: pkg/apis/core/v1/helper/helpers.go */

/** What a quota puts before a name to bound how much of it is asked for. */
export const requestsPrefix = "requests.";

/** One of Kubernetes' own: without a domain, or in its domain. */
export function isNativeResource(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

/** In a domain of somebody's, and a quota could name it: `example.com/gpu`. */
export function isExtendedResource(name: string): boolean {
  return !isNativeResource(name) && !name.startsWith(requestsPrefix) && isQualifiedName(`${requestsPrefix}${name}`).length === 0;
}

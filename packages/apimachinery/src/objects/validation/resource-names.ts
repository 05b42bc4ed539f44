import { qualifiedNameProblems } from "./qualified-name.ts";

/** Names of compute resources. Source: pkg/apis/core/v1/helper/helpers.go */

/** Prefix of quota resources that limit requests. */
export const requestsPrefix = "requests.";

/** True for names without domain or in `kubernetes.io/`. */
export function isNativeResource(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

/** True for names in another domain that are valid in quotas, e.g. `example.com/gpu`. */
export function isExtendedResource(name: string): boolean {
  return (
    !isNativeResource(name) && !name.startsWith(requestsPrefix) && qualifiedNameProblems(`${requestsPrefix}${name}`).length === 0
  );
}

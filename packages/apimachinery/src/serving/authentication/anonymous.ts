import type { Authenticator } from "./authenticator.ts";
import { allUnauthenticated, anonymousName } from "./user.ts";

/** Authenticates every request as system:anonymous, for all of `apiAudiences`. Source: pkg/authentication/request/anonymous */
export function anonymous(apiAudiences: readonly string[]): Authenticator {
  const result = { user: { name: anonymousName, groups: [allUnauthenticated] }, audiences: apiAudiences };
  return async () => result;
}

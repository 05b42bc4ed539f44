import type { Authenticator } from "./authenticator.ts";
import { allUnauthenticated, anonymousName } from "./user.ts";

/** Who shows no credential is system:anonymous, whatever the audience. Source: pkg/authentication/request/anonymous */
export function anonymous(apiAudiences: readonly string[]): Authenticator {
  const result = { user: { name: anonymousName, groups: [allUnauthenticated] }, audiences: apiAudiences };
  return async () => result;
}

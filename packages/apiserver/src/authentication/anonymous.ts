import { allUnauthenticated, anonymousName } from "../request/user-names.ts";
import type { Authenticator } from "./authenticator.ts";

/** Who shows no credential is system:anonymous, whatever the audience. Source: pkg/authentication/request/anonymous */
export function anonymous(apiAudiences: readonly string[]): Authenticator {
  const result = { user: { name: anonymousName, groups: [allUnauthenticated] }, audiences: apiAudiences };
  return async () => result;
}

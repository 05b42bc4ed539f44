import type { Exchange } from "../exchange.ts";
import type { UserInfo } from "./user.ts";

export interface AuthenticationResult {
  readonly user: UserInfo;
  /** Audiences for which the credential is valid; undefined for credentials without audiences. */
  readonly audiences?: readonly string[];
  /** Annotations for the audit events of requests with this credential. */
  readonly auditAnnotations?: Readonly<Record<string, string>>;
}

/**
 * @returns undefined when the request has no credential of this kind
 * @throws Error when the credential is invalid
 */
export type Authenticator = (exchange: Exchange) => Promise<AuthenticationResult | undefined>;

/**
 * @param audiences the audiences the server accepts; undefined: any
 * @returns undefined for an unknown token
 */
export type TokenAuthenticator = (
  token: string,
  audiences: readonly string[] | undefined,
) => Promise<AuthenticationResult | undefined>;

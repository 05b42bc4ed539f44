import type { Exchange } from "../exchange.ts";
import type { UserInfo } from "./user.ts";

export interface AuthenticationResult {
  readonly user: UserInfo;
  /** Audiences that the credential is good for; undefined when it has none. */
  readonly audiences?: readonly string[];
  /** What the audit of each request with this credential says of it. */
  readonly auditAnnotations?: Readonly<Record<string, string>>;
}

/** @returns undefined when the request carries nothing of this kind. @throws Error when it does and it is wrong. */
export type Authenticator = (exchange: Exchange) => Promise<AuthenticationResult | undefined>;

export type TokenAuthenticator = (
  token: string,
  audiences: readonly string[] | undefined,
) => Promise<AuthenticationResult | undefined>;

/**
 * Combines authenticators: the first that recognizes the request wins. An error of one does not stop the next; errors are
 * reported only when none recognizes the request.
 * Source: k8s.io/apiserver pkg/authentication/request/union/union.go, pkg/kubeapiserver/authenticator/config.go
 */

import { messageOf } from "../../objects/errors/message.ts";
import type { AuthenticationResult, Authenticator, TokenAuthenticator } from "./authenticator.ts";
import { allAuthenticated, allUnauthenticated, anonymousName } from "./user.ts";

/** @throws Error that lists all failures when no authenticator recognizes the request and at least one failed */
export function unionAuthenticator(authenticators: readonly Authenticator[]): Authenticator {
  return async (exchange) => {
    const errors: unknown[] = [];
    for (const authenticate of authenticators) {
      try {
        const result = await authenticate(exchange);
        if (result !== undefined) return result;
      } catch (err) {
        errors.push(err);
      }
    }
    return failAll(errors);
  };
}

/** Same as {@link unionAuthenticator}, for tokens. */
export function unionTokenAuthenticator(authenticators: readonly TokenAuthenticator[]): TokenAuthenticator {
  return async (token, audiences) => {
    const errors: unknown[] = [];
    for (const authenticate of authenticators) {
      try {
        const result = await authenticate(token, audiences);
        if (result !== undefined) return result;
      } catch (err) {
        errors.push(err);
      }
    }
    return failAll(errors);
  };
}

function failAll(errors: readonly unknown[]): undefined {
  if (errors.length === 0) return undefined;
  if (errors.length === 1) throw errors[0];
  throw new Error(`[${errors.map((err) => messageOf(err)).join(", ")}]`);
}

/** Calls `fallback` (anonymous) when `first` finds no credential. An error of `first` is final. */
export function withFallback(first: Authenticator, fallback: Authenticator): Authenticator {
  return async (exchange) => (await first(exchange)) ?? fallback(exchange);
}

/**
 * Adds system:authenticated to the groups of non-anonymous users. Source: pkg/authentication/group/authenticated_group_adder.go
 */
export function withAuthenticatedGroup(authenticate: Authenticator): Authenticator {
  return async (exchange) => {
    const result = await authenticate(exchange);
    return result === undefined ? undefined : addAuthenticatedGroup(result);
  };
}

/** Same as {@link withAuthenticatedGroup}, for tokens. */
export function withAuthenticatedGroupToken(authenticate: TokenAuthenticator): TokenAuthenticator {
  return async (token, audiences) => {
    const result = await authenticate(token, audiences);
    return result === undefined ? undefined : addAuthenticatedGroup(result);
  };
}

/** A pure cache: results come from caches and are seen repeatedly; the extended copy is made once. */
const withGroup = new WeakMap<AuthenticationResult, AuthenticationResult>();

function addAuthenticatedGroup(result: AuthenticationResult): AuthenticationResult {
  const { user } = result;
  if (user.name === anonymousName) return result;
  if (user.groups.includes(allAuthenticated) || user.groups.includes(allUnauthenticated)) return result;
  let added = withGroup.get(result);
  if (added === undefined) {
    added = { ...result, user: { ...user, groups: [...user.groups, allAuthenticated] } };
    withGroup.set(result, added);
  }
  return added;
}

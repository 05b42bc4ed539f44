/**
 * The first authenticator that recognises the request. One that refuses does not hide the next; only when none
 * recognises it, what was refused is reported.
 * Source: k8s.io/apiserver pkg/authentication/request/union/union.go, pkg/kubeapiserver/authenticator/config.go
 */

import { messageOf } from "../../errors/message.ts";
import type { AuthenticationResult, Authenticator, TokenAuthenticator } from "./authenticator.ts";
import { allAuthenticated, allUnauthenticated, anonymousName } from "./user.ts";

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

/** A refusal by the first is final; what the first does not know goes to the fallback (anonymous). */
export function withFallback(first: Authenticator, fallback: Authenticator): Authenticator {
  return async (exchange) => (await first(exchange)) ?? fallback(exchange);
}

/** Everybody who proved an identity is in system:authenticated. Source: pkg/authentication/group/authenticated_group_adder.go */
export function withAuthenticatedGroup(authenticate: Authenticator): Authenticator {
  return async (exchange) => {
    const result = await authenticate(exchange);
    return result === undefined ? undefined : addAuthenticatedGroup(result);
  };
}

export function withAuthenticatedGroupToken(authenticate: TokenAuthenticator): TokenAuthenticator {
  return async (token, audiences) => {
    const result = await authenticate(token, audiences);
    return result === undefined ? undefined : addAuthenticatedGroup(result);
  };
}

/** Results are cached and come again and again. */
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

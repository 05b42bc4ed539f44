/**
 * Authenticates and authorizes requests on a component's own port, and answers refused ones with upstream's Status.
 * Source: k8s.io/apiserver pkg/endpoints/filters/authentication.go, authorization.go
 */

import { forbidden, type StatusError, unauthorized } from "../../objects/errors/status-error.ts";
import { goQuote } from "../../objects/meta/go-quote.ts";
import type { Logger } from "../../process/logging/logger.ts";
import type { Authenticator } from "../authentication/authenticator.ts";
import type { UserInfo } from "../authentication/user.ts";
import type { Exchange } from "../exchange.ts";
import { answerInternalError, escapeHtml } from "../plain-error.ts";
import type { DelegatedAuthorizer } from "./authorization.ts";

interface GuardOptions {
  readonly authenticate: Authenticator;
  readonly authorize: DelegatedAuthorizer;
  readonly log: Logger;
}

/** @returns true when the request is allowed; otherwise a response was sent */
export type Guard = (exchange: Exchange, path: string) => Promise<boolean>;

/** Creates a guard. Failed authentication is answered with 401, denied access with 403, a failed authorization check with 500. */
export function newGuard({ authenticate, authorize, log }: GuardOptions): Guard {
  const identify = (exchange: Exchange): Promise<UserInfo | undefined> =>
    authenticate(exchange).then(
      (result) => result?.user,
      (err: unknown) => {
        log.error("Unable to authenticate the request due to an error", err);
        return undefined;
      },
    );
  return async (exchange, path) => {
    const user = await identify(exchange);
    if (user === undefined) {
      refuse(exchange, unauthorized("Unauthorized"));
      return false;
    }
    const verb = exchange.method.toLowerCase();
    try {
      const { allowed, reason } = await authorize(user, { nonResourceAttributes: { path, verb } });
      if (allowed) return true;
      const sentence = escapeHtml(`User ${goQuote(user.name)} cannot ${verb} path ${goQuote(path)}`);
      refuse(exchange, forbidden({ group: "", resource: "" }, "", reason === "" ? sentence : `${sentence}: ${reason}`));
    } catch (err) {
      log.error("cannot check whether a request is allowed", err, { user: user.name });
      answerInternalError(exchange, err);
    }
    return false;
  };
}

function refuse(exchange: Exchange, { code, status }: StatusError): void {
  const headers = { "content-type": "application/json", "x-content-type-options": "nosniff" };
  exchange.respond(code, headers, `${JSON.stringify(status)}\n`);
}

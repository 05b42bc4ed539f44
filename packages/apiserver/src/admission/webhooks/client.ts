/**
 * Calls one admission webhook: posts an AdmissionReview over HTTPS.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go
 */

import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { WebhookClientConfig } from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newWebhookCaller, WebhookCallError, type WebhookDialers, WebhookNotCalledError } from "./caller.ts";
import type { CredentialsFor } from "./credentials.ts";
import type { ResolveService } from "./endpoint.ts";
import { type Review, readAnswer, type WebhookAnswer } from "./review.ts";

interface WebhookTarget {
  readonly clientConfig: WebhookClientConfig;
  readonly timeoutSeconds?: number;
}

export interface WebhookClient {
  /** @throws WebhookCallError */
  review(webhook: WebhookTarget, review: Review, expectsPatch: boolean, signal: AbortSignal): Promise<WebhookAnswer>;
}

const defaultTimeoutSeconds = 10;

export function newWebhookClient(
  resolve: ResolveService,
  credentialsFor: CredentialsFor,
  turns: Turns,
  dialers?: WebhookDialers,
): WebhookClient {
  const caller = newWebhookCaller(resolve, credentialsFor, turns, dialers);
  return {
    async review({ clientConfig, timeoutSeconds = defaultTimeoutSeconds }, review, expectsPatch, signal) {
      const body = await caller
        .call(clientConfig, { body: review.body, timeoutSeconds, namesTimeout: true, signal })
        .catch((err: unknown) => {
          throw asRefused(err);
        });
      try {
        return await turns.run(readAnswer(body, review, expectsPatch));
      } catch (err) {
        throw new WebhookCallError(`received invalid webhook response: ${messageOf(err)}`, 503, err);
      }
    },
  };
}

function asRefused(err: unknown): unknown {
  if (!(err instanceof WebhookCallError) || err instanceof WebhookNotCalledError) return err;
  return new WebhookCallError(`failed to call webhook: ${err.message}`, err.code, err.cause);
}

import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Aggregator } from "../aggregation/aggregator.ts";
import { goesOn, type PostStartHook } from "./post-start-hooks.ts";

/** Its end has a check of its own beside it, `autoregister-completion`. */
export const autoregistrationHook = "kube-apiserver-autoregistration";

export interface AggregatorHookOptions {
  readonly aggregator: Aggregator;
  /** --proxy-client-cert-file is followed. */
  readonly followsCertificate: boolean;
  /** Resolves when the group versions of all custom resources were added that there are at start. */
  readonly customResourcesKnown: (signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

/**
 * What the aggregator does from the start on, in the order in which health names it. Most of it goes on until the server
 * ends; a hook is done when it has begun.
 * Source: kube-aggregator pkg/apiserver/apiserver.go, cmd/kube-apiserver/app/aggregator.go
 */
export function aggregatorHooks({
  aggregator,
  followsCertificate,
  customResourcesKnown,
  log,
}: AggregatorHookOptions): PostStartHook[] {
  const began = async (): Promise<void> => {};
  return [
    ...(followsCertificate ? [{ name: "aggregator-reload-proxy-client-cert", run: began }] : []),
    { name: "start-kube-aggregator-informers", run: began },
    { name: "apiservice-registration-controller", run: (signal) => aggregator.waitForSync(signal) },
    goesOn("apiservice-status-available-controller", (signal) => aggregator.checkAvailability(signal), log),
    goesOn(autoregistrationHook, (signal) => aggregator.autoregistration.run(customResourcesKnown(signal), signal), log),
    goesOn("apiservice-openapi-controller", (signal) => aggregator.openApi.run(signal), log),
  ];
}

import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Aggregator } from "../aggregation/aggregator.ts";
import { backgroundHook, type PostStartHook } from "./post-start-hooks.ts";

/** The hook that registers APIServices. Its completion has a separate health check, `autoregister-completion`. */
export const autoregistrationHook = "kube-apiserver-autoregistration";

interface AggregatorHookOptions {
  readonly aggregator: Aggregator;
  /** Whether --proxy-client-cert-file is reloaded. */
  readonly followsCertificate: boolean;
  /** Resolves when the group versions of all custom resources that exist at startup are registered. */
  readonly customResourcesKnown: (signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

/**
 * The post-start hooks of the aggregator, in the order in which health lists them. Most run until the server stops; such a
 * hook is finished once started.
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
    backgroundHook("apiservice-status-available-controller", (signal) => aggregator.checkAvailability(signal), log),
    backgroundHook(autoregistrationHook, (signal) => aggregator.autoregistration.run(customResourcesKnown(signal), signal), log),
    backgroundHook("apiservice-openapi-controller", (signal) => aggregator.openApi.run(signal), log),
  ];
}

import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { CustomResources } from "../custom-resources/custom-resources.ts";
import { goesOn, type PostStartHook } from "./post-start-hooks.ts";

/**
 * What custom resources need from the start on, in the order in which health names it.
 * Source: apiextensions-apiserver pkg/apiserver/apiserver.go
 */
export function customResourceHooks(customResources: CustomResources, log: Logger): PostStartHook[] {
  return [
    { name: "start-apiextensions-informers", run: async () => {} },
    goesOn("start-apiextensions-controllers", (signal) => customResources.run(signal), log),
    { name: "crd-informer-synced", run: (signal) => customResources.waitForSync(signal) },
  ];
}

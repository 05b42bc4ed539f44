import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { CustomResources } from "../custom-resources/custom-resources.ts";
import { backgroundHook, type PostStartHook } from "./post-start-hooks.ts";

/**
 * The post-start hooks of custom resources, in the order in which health lists them.
 * Source: apiextensions-apiserver pkg/apiserver/apiserver.go
 */
export function customResourceHooks(customResources: CustomResources, log: Logger): PostStartHook[] {
  return [
    { name: "start-apiextensions-informers", run: async () => {} },
    backgroundHook("start-apiextensions-controllers", (signal) => customResources.run(signal), log),
    { name: "crd-informer-synced", run: (signal) => customResources.waitForSync(signal) },
  ];
}

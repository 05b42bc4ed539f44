import { isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { isNamespace, namespaceLookup } from "./namespace-lookup.ts";

/**
 * Creates a missing namespace when the first object in it is created.
 * Source: plugin/pkg/admission/namespace/autoprovision/admission.go
 */
export function namespaceAutoProvision(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespaceLookup(ctx.informers, ctx.client);
  return {
    name: "NamespaceAutoProvision",
    handles: (operation) => operation === "CREATE",
    ready: () => lookup.synced,
    async admit(attributes) {
      const { namespace, dryRun, signal } = attributes;
      if (dryRun || namespace === "" || isNamespace(attributes)) return;
      if ((await lookup.get(namespace)) !== undefined) return;
      await ctx.client.create(namespaces, { metadata: { name: namespace } }, { signal }).catch((err: unknown) => {
        if (!isAlreadyExists(err)) throw err;
      });
    },
  };
}

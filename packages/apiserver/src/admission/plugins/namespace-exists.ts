import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { isNamespace, namespaceLookup } from "./namespace-lookup.ts";

/** Rejects writes in a namespace that does not exist. Source: plugin/pkg/admission/namespace/exists/admission.go */
export function namespaceExists(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespaceLookup(ctx.informers, ctx.client);
  return {
    name: "NamespaceExists",
    handles: (operation) => operation !== "CONNECT",
    ready: () => lookup.synced,
    async validate(attributes) {
      const { namespace } = attributes;
      if (namespace === "" || isNamespace(attributes)) return;
      if ((await lookup.get(namespace)) === undefined) throw notFound(namespaces, namespace);
    },
  };
}

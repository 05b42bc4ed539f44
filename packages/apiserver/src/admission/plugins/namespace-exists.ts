import { notFound } from "@coxswain/apimachinery/errors/status-error";
import { namespaces } from "@coxswain/apimachinery/schema/kinds/resources";
import type { PluginContext } from "../catalogue.ts";
import type { AdmissionPlugin } from "../plugin.ts";
import { namespaceLookup } from "./namespace-lookup.ts";

/** Refuses writes in a missing namespace. Source: plugin/pkg/admission/namespace/exists/admission.go */
export function namespaceExists(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespaceLookup(ctx.informers, ctx.client);
  return {
    name: "NamespaceExists",
    handles: (operation) => operation !== "CONNECT",
    ready: () => lookup.synced,
    async validate({ namespace, kind }) {
      if (namespace === "" || kind.kind === "Namespace") return;
      if ((await lookup.get(namespace)) === undefined) throw notFound(namespaces, namespace);
    },
  };
}

/**
 * Merges the namespace's node selector, from its annotation or the configuration, into pods, and rejects pods whose
 * selector violates the namespace's whitelist.
 * Source: plugin/pkg/admission/podnodeselector/admission.go
 */
import { forbidden, notFound, plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { namespaceLookup } from "./namespace-lookup.ts";
import { type PodObject, podOf } from "./pod-of.ts";

type Labels = ReadonlyMap<string, string>;

const annotation = "scheduler.alpha.kubernetes.io/node-selector";

/** Configuration: `podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: "a=b", <namespace>: "c=d,e=f"}`. */
export function podNodeSelector(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespaceLookup(ctx.informers, ctx.client);
  const {
    podNodeSelectorPluginConfig = {},
  }: {
    podNodeSelectorPluginConfig?: Record<string, string>;
  } = ctx.configurationOf("PodNodeSelector") ?? {};
  const selectors = new Map(Object.entries(podNodeSelectorPluginConfig));

  const ofNamespace = async (name: string): Promise<Labels> => {
    const namespace = await lookup.get(name);
    if (namespace === undefined) throw notFound({ group: "", resource: "namespaces" }, name);
    const annotations = namespace.metadata.annotations ?? {};
    const own = Object.hasOwn(annotations, annotation) ? annotations[annotation] : undefined;
    return parseLabels(own ?? selectors.get("clusterDefaultNodeSelector") ?? "");
  };

  const check = (attributes: AdmissionAttributes, pod: PodObject, wanted: Labels): void => {
    const refused = (message: string): Error => forbidden(attributes.resource, pod.metadata.name ?? "", message);
    const selected = Object.entries(pod.spec.nodeSelector ?? {});
    if (selected.some(([key, value]) => wanted.has(key) && wanted.get(key) !== value)) {
      throw refused("pod node label selector conflicts with its namespace node label selector");
    }
    const allowed = parseLabels(selectors.get(attributes.namespace) ?? "");
    if (allowed.size > 0 && selected.some(([key, value]) => allowed.get(key) !== value)) {
      throw refused("pod node label selector labels conflict with its namespace whitelist");
    }
  };

  return {
    name: "PodNodeSelector",
    handles: (operation) => operation === "CREATE",
    ready: () => lookup.synced,
    async admit(attributes) {
      const pod = podOf(attributes);
      if (pod === undefined) return;
      const wanted = await ofNamespace(attributes.namespace);
      const had = pod.spec.nodeSelector ?? {};
      const missing = [...wanted].filter(([key]) => !Object.hasOwn(had, key));
      if (missing.length > 0) pod.spec.nodeSelector = { ...Object.fromEntries(missing), ...had };
      check(attributes, pod, wanted);
    },
    async validate(attributes) {
      const pod = podOf(attributes);
      if (pod !== undefined) check(attributes, pod, await ofNamespace(attributes.namespace));
    },
  };
}

/** Parses `a=b,c=d`; other operators are not supported. */
function parseLabels(text: string): Labels {
  const labels = new Map<string, string>();
  if (text === "") return labels;
  for (const term of text.split(",")) {
    const parts = term.split("=");
    if (parts.length !== 2) throw plainError(`invalid selector: [${parts.join(" ")}]`);
    labels.set(parts[0]!.trim(), parts[1]!.trim());
  }
  return labels;
}

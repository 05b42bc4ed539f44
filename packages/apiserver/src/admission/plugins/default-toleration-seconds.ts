/**
 * Adds tolerations for the not-ready and unreachable taints, with the --default-*-toleration-seconds, to pods without them.
 * Source: plugin/pkg/admission/defaulttolerationseconds/admission.go
 */
import type { Pod, Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";

export function defaultTolerationSeconds(ctx: PluginContext): AdmissionPlugin<Pod> {
  const wanted = [
    { key: "node.kubernetes.io/not-ready", seconds: ctx.defaultNotReadyTolerationSeconds },
    { key: "node.kubernetes.io/unreachable", seconds: ctx.defaultUnreachableTolerationSeconds },
  ];
  return {
    name: "DefaultTolerationSeconds",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    resources: ["pods"],
    async admit({ resource, subresource, object }) {
      if (resource.group !== "" || resource.resource !== "pods" || subresource !== "" || object === undefined) return;
      const { spec } = object;
      if (spec === undefined) return;
      const had: readonly Toleration[] = spec.tolerations ?? [];
      const missing = wanted.filter(({ key }) => !had.some((toleration) => covers(toleration, key)));
      if (missing.length === 0) return;
      spec.tolerations = [
        ...had,
        ...missing.map(({ key, seconds }) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: seconds })),
      ];
    },
  };
}

function covers({ key, effect }: Toleration, wantedKey: string): boolean {
  return (!key || key === wantedKey) && (!effect || effect === "NoExecute");
}

/**
 * Sets the overhead and merges the scheduling constraints of a pod's RuntimeClass.
 * Source: plugin/pkg/admission/runtimeclass/admission.go
 */
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSpec, Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { runtimeClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { mergeTolerations } from "./pod-toleration-restriction.ts";

interface RuntimeClassObject extends KubeObject {
  overhead?: { podFixed?: Record<string, string> };
  scheduling?: { nodeSelector?: Record<string, string>; tolerations?: Toleration[] };
}
interface PodObject extends KubeObject {
  spec: PodSpec;
}

export function runtimeClass(ctx: PluginContext): AdmissionPlugin<PodObject> {
  const hasOverhead = ctx.featureEnabled("PodOverhead");
  const informer = ctx.informers.for<RuntimeClassObject>(runtimeClasses);
  const classOf = async (attributes: AdmissionAttributes, { spec }: PodObject): Promise<RuntimeClassObject | undefined> => {
    const name = spec.runtimeClassName;
    if (name === undefined || name === "") return undefined;
    const known = informer.lister.get(name);
    if (known !== undefined) return known;
    return ctx.client.get<RuntimeClassObject>(runtimeClasses, { name }).catch((err: unknown) => {
      if (isNotFound(err)) throw refuse(attributes, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
      throw err;
    });
  };
  return {
    name: "RuntimeClass",
    handles: (operation) => operation === "CREATE",
    resources: ["pods"],
    ready: () => informer.synced,
    async admit(attributes) {
      const pod = podIn(attributes);
      if (pod === undefined) return;
      const found = await classOf(attributes, pod);
      if (hasOverhead && found?.overhead?.podFixed !== undefined) {
        if (pod.spec.overhead !== undefined && !semanticEqual(pod.spec.overhead, found.overhead.podFixed)) {
          throw refuse(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
        }
        pod.spec.overhead = { ...found.overhead.podFixed };
      }
      if (found?.scheduling !== undefined) setScheduling(attributes, pod, found.scheduling);
    },
    async validate(attributes) {
      const pod = podIn(attributes);
      if (pod === undefined || !hasOverhead) return;
      const found = await classOf(attributes, pod);
      if (found?.overhead !== undefined) {
        if (!semanticEqual(pod.spec.overhead, found.overhead.podFixed)) {
          throw refuse(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
        }
      } else if (pod.spec.overhead !== undefined && Object.keys(pod.spec.overhead).length > 0) {
        throw refuse(attributes, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
      }
    },
  };
}

function podIn({ resource, subresource, object }: AdmissionAttributes<PodObject>): PodObject | undefined {
  return resource.group === "" && resource.resource === "pods" && subresource === "" ? object : undefined;
}

function setScheduling(
  attributes: AdmissionAttributes,
  { spec }: PodObject,
  scheduling: NonNullable<RuntimeClassObject["scheduling"]>,
): void {
  const selector = scheduling.nodeSelector ?? {};
  for (const [key, value] of Object.entries(selector)) {
    if (spec.nodeSelector !== undefined && Object.hasOwn(spec.nodeSelector, key) && spec.nodeSelector[key] !== value) {
      throw refuse(
        attributes,
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${spec.nodeSelector[key]}`,
      );
    }
  }
  if (Object.keys(selector).length > 0) spec.nodeSelector = { ...spec.nodeSelector, ...selector };
  const tolerations = mergeTolerations(spec.tolerations ?? [], scheduling.tolerations ?? []);
  if (tolerations.length > 0) spec.tolerations = tolerations.map((toleration) => ({ ...toleration }));
}

/**
 * Resolves the priority class of pods to a number, and rejects a second global default class.
 * Source: plugin/pkg/admission/priority/admission.go
 */

import type { Client } from "@coxswain/apimachinery/client/client";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { priorityClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { isOn, type PodObject } from "./pod-of.ts";

interface PriorityClass extends KubeObject {
  value: number;
  globalDefault?: boolean;
  preemptionPolicy?: string;
}
export const priority = (ctx: PluginContext): AdmissionPlugin => new Priority(ctx);

class Priority implements AdmissionPlugin {
  readonly name = "Priority";
  readonly resources = ["pods", "priorityclasses.scheduling.k8s.io"];
  readonly #client: Client;
  readonly #informer: SharedInformer<PriorityClass>;
  /** Pods may have a policy of preemption. */
  readonly #hasPolicies: boolean;

  constructor({ client, informers, featureEnabled }: PluginContext) {
    this.#client = client;
    this.#hasPolicies = featureEnabled("NonPreemptingPriority");
    this.#informer = informers.for<PriorityClass>(priorityClasses);
  }

  #defaultClass(): PriorityClass | undefined {
    let lowest: PriorityClass | undefined;
    for (const candidate of this.#informer.lister.list()) {
      if (candidate.globalDefault === true && (lowest === undefined || candidate.value < lowest.value)) lowest = candidate;
    }
    return lowest;
  }

  async #classNamed(name: string): Promise<PriorityClass | undefined> {
    const known = this.#informer.lister.get(name);
    if (known !== undefined) return known;
    return this.#client.get<PriorityClass>(priorityClasses, { name }).catch((err: unknown) => {
      if (isNotFound(err)) return undefined;
      throw err;
    });
  }

  async #admitNewPod(attributes: AdmissionAttributes, { spec }: PodObject): Promise<void> {
    let value = 0;
    let policy: string | undefined = "PreemptLowerPriority";
    if (spec.priorityClassName) {
      const found = await this.#classNamed(spec.priorityClassName);
      if (found === undefined) throw refuse(attributes, `no PriorityClass with name ${spec.priorityClassName} was found`);
      value = found.value;
      policy = found.preemptionPolicy;
    } else {
      const found = this.#defaultClass();
      if (found !== undefined) {
        spec.priorityClassName = found.metadata.name!;
        value = found.value;
        policy = found.preemptionPolicy;
      }
    }
    if (spec.priority !== undefined && spec.priority !== value) {
      throw refuse(
        attributes,
        `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`,
      );
    }
    spec.priority = value;
    if (policy === undefined || !this.#hasPolicies) return;
    if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy) {
      throw refuse(
        attributes,
        `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`,
      );
    }
    spec.preemptionPolicy = policy;
  }

  handles(operation: AdmissionAttributes["operation"]): boolean {
    return operation === "CREATE" || operation === "UPDATE";
  }

  ready(): boolean {
    return this.#informer.synced;
  }

  async admit(attributes: AdmissionAttributes): Promise<void> {
    if (!isOn<PodObject>(attributes, "pods")) return;
    const { subresource, object: pod, oldObject } = attributes;
    if (subresource !== "" || pod === undefined) return;
    if (attributes.operation === "CREATE") return this.#admitNewPod(attributes, pod);
    // Old clients drop these fields on update; keep the values that admission set on create.
    const before = oldObject!.spec;
    if (pod.spec.priority === undefined && before.priority !== undefined) pod.spec.priority = before.priority;
    if (pod.spec.preemptionPolicy === undefined && before.preemptionPolicy !== undefined) {
      pod.spec.preemptionPolicy = before.preemptionPolicy;
    }
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    if (!isOn<PriorityClass>(attributes, "priorityclasses.scheduling.k8s.io")) return;
    const { subresource, object: wanted } = attributes;
    if (subresource !== "") return;
    if (wanted?.globalDefault !== true) return;
    const current = this.#defaultClass();
    if (current === undefined) return;
    if (attributes.operation === "CREATE" || current.metadata.name !== wanted.metadata.name) {
      throw refuse(attributes, `PriorityClass ${current.metadata.name} is already marked as default. Only one default can exist`);
    }
  }
}

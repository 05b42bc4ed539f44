/**
 * Merges the namespace's default tolerations into pods and rejects tolerations outside its whitelist; namespaces without
 * the annotations use the cluster-wide configuration.
 * Source: plugin/pkg/admission/podtolerationrestriction/admission.go, pkg/util/tolerations/tolerations.go
 */

import { parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { notFound, plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { PodSpec, Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { tolerationText } from "@coxswain/apimachinery/scheduling/tolerations";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { type NamespaceObject, namespaceLookup } from "./namespace-lookup.ts";
import { type PodObject, podOf } from "./pod-of.ts";

interface Configuration {
  default?: Toleration[];
  whitelist?: Toleration[];
}

const defaultsAnnotation = "scheduler.alpha.kubernetes.io/defaultTolerations";
const whitelistAnnotation = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const memoryPressure: Toleration = { key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" };

export function podTolerationRestriction(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespaceLookup(ctx.informers, ctx.client);
  const config: Configuration = ctx.configurationOf("PodTolerationRestriction") ?? {};

  const namespaceOf = async (name: string): Promise<NamespaceObject> => {
    const namespace = await lookup.get(name);
    if (namespace === undefined) throw notFound({ group: "", resource: "namespaces" }, name);
    return namespace;
  };
  const check = (pod: PodObject, namespace: NamespaceObject): void => {
    const own = tolerationsIn(namespace, whitelistAnnotation);
    const whitelist = own ?? config.whitelist ?? [];
    if (whitelist.length === 0) return;
    const widest = new WidestTolerations();
    for (const allowed of whitelist) widest.add(allowed);
    if ((pod.spec.tolerations ?? []).every((toleration) => widest.has(toleration) || widest.someCovers(toleration))) return;
    const scope = own === undefined ? "cluster" : "namespace";
    throw plainError(`pod tolerations (possibly merged with namespace default tolerations) conflict with its ${scope} whitelist`);
  };

  return {
    name: "PodTolerationRestriction",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    ready: () => lookup.synced,
    async admit(attributes) {
      const pod = podOf(attributes);
      if (pod === undefined) return;
      const namespace = await namespaceOf(attributes.namespace);
      const extra: Toleration[] = [];
      if (attributes.operation === "CREATE") {
        extra.push(...(tolerationsIn(namespace, defaultsAnnotation) ?? config.default ?? []));
      }
      if (isNotBestEffort(pod.spec)) extra.push(memoryPressure);
      if (extra.length > 0) pod.spec.tolerations = mergeTolerations(pod.spec.tolerations ?? [], extra);
      check(pod, namespace);
    },
    async validate(attributes) {
      const pod = podOf(attributes);
      if (pod !== undefined) check(pod, await namespaceOf(attributes.namespace));
    },
  };
}

/** @returns undefined without the annotation, in contrast to an empty list. */
function tolerationsIn({ metadata }: NamespaceObject, annotation: string): Toleration[] | undefined {
  const annotations = metadata.annotations ?? {};
  const text = Object.hasOwn(annotations, annotation) ? annotations[annotation] : undefined;
  if (text === undefined) return undefined;
  if (text === "") return [];
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (err) {
    throw plainError(messageOf(err));
  }
  if (!Array.isArray(value)) throw plainError(`annotation ${annotation}: not a list of tolerations`);
  return value;
}

/** True for pods whose quality of service is not BestEffort. */
function isNotBestEffort(spec: PodSpec): boolean {
  const isSet = (list: Readonly<Record<string, unknown>> | undefined): boolean =>
    ["cpu", "memory"].some(
      (name) => list !== undefined && Object.hasOwn(list, name) && !/^0*(\.0*)?[A-Za-z]*$/.test(String(list[name])),
    );
  return [...(spec.containers ?? []), ...(spec.initContainers ?? [])].some(
    ({ resources }) => isSet(resources?.requests) || isSet(resources?.limits),
  );
}

/** Concatenates both lists without tolerations that another one covers, in time that is linear in their number. */
export function mergeTolerations(first: readonly Toleration[], second: readonly Toleration[]): Toleration[] {
  const all = [...first, ...second];
  const later = new WidestTolerations();
  const coveredLater = all.map(() => false);
  for (let at = all.length - 1; at >= 0; at--) {
    const toleration = all[at]!;
    coveredLater[at] = later.someCovers(toleration);
    later.add(toleration);
  }
  const kept = new WidestTolerations();
  return all.filter((toleration, at) => {
    if (coveredLater[at] || kept.has(toleration) || kept.someCovers(toleration)) return false;
    kept.add(toleration);
    return true;
  });
}

/**
 * Finds whether one of many tolerations covers another. Tolerations of the same key, operator, value and effect differ only in
 * how long they tolerate, so the two longest of them suffice, two because one may be equal to the toleration in question.
 */
class WidestTolerations {
  readonly #all = new Set<string>();
  readonly #widest = new Map<string, Toleration[]>();
  /** Which operators, and whether empty keys and effects, have been added: other groups cannot exist and are not looked up. */
  readonly #operators = new Set<string>();
  #hasWideKey = false;
  #hasWideEffect = false;

  add(toleration: Toleration): void {
    const text = tolerationText(toleration);
    if (this.#all.has(text)) return;
    this.#all.add(text);
    const { key, operator, value, effect } = toleration;
    const group = groupOf(key, operator, value, effect);
    const before = this.#widest.get(group);
    if (before === undefined) this.#widest.set(group, [toleration]);
    else this.#widest.set(group, [...before, toleration].sort((a, b) => secondsOf(b) - secondsOf(a)).slice(0, 2));
    this.#operators.add(operator ?? "");
    this.#hasWideKey ||= !key;
    this.#hasWideEffect ||= !effect;
  }

  has(toleration: Toleration): boolean {
    return this.#all.has(tolerationText(toleration));
  }

  /** True when a toleration that is not equal covers it. */
  someCovers(narrow: Toleration): boolean {
    const { key, value, effect } = narrow;
    for (const wideKey of key && this.#hasWideKey ? [key, ""] : [key])
      for (const operator of this.#operators)
        for (const wideEffect of effect && this.#hasWideEffect ? [effect, ""] : [effect])
          for (const wide of this.#widest.get(groupOf(wideKey, operator, value, wideEffect)) ?? [])
            if (!semanticEqual(wide, narrow) && covers(wide, narrow)) return true;
    return false;
  }
}

/** The lengths keep groups apart whose texts are the same when joined. */
function groupOf(key = "", operator = "", value = "", effect = ""): string {
  const own = operator === "Exists" ? "" : value;
  return `${key.length} ${operator.length} ${own.length} ${key}${operator}${own}${effect}`;
}

/** Compared only within a group; without NoExecute, the seconds have no meaning. */
const secondsOf = ({ effect, tolerationSeconds }: Toleration): number =>
  effect === "NoExecute" ? Number(tolerationSeconds ?? Number.MAX_VALUE) : 0;

/** True when `wide` tolerates every taint that `narrow` tolerates. */
export function covers(wide: Toleration, narrow: Toleration): boolean {
  if (semanticEqual(wide, narrow)) return true;
  const allKeys = !wide.key && wide.operator === "Exists";
  if ((wide.key ?? "") !== (narrow.key ?? "") && !allKeys) return false;
  if (wide.effect && wide.effect !== narrow.effect) return false;
  if (wide.effect === "NoExecute" && wide.tolerationSeconds !== undefined) {
    if (narrow.tolerationSeconds === undefined || narrow.tolerationSeconds > wide.tolerationSeconds) return false;
  }
  if (wide.operator === "Exists") return true;
  if (wide.operator && wide.operator !== "Equal") return false;
  return narrow.operator === "Equal" && (narrow.value ?? "") === (wide.value ?? "");
}

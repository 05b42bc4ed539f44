import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { AnyContainer, NodePod } from "../pod/pod.ts";
import type { PodObjects } from "../pod/pod-objects.ts";
import { type DownwardContext, fieldValue, resourceValue } from "./downward-api-env.ts";
import { expand } from "./expansion.ts";
import { serviceEnvironment } from "./service-links.ts";

interface EnvironmentContext extends DownwardContext {
  objects: PodObjects;
  services: readonly Service[];
  /** Called with keys that are not valid variable names and are skipped. */
  onInvalidNames: (kind: "ConfigMap" | "Secret", name: string, keys: readonly string[]) => void;
}

/**
 * The environment of a container: `envFrom`, then `env` with expansion of earlier variables, then service links that are not
 * overridden.
 * @throws Error whose message becomes that of CreateContainerConfigError: a required object or key is missing
 * Source: pkg/kubelet/kubelet_pods.go makeEnvironmentVariables
 */
export async function environmentOf(
  pod: NodePod,
  container: AnyContainer,
  context: EnvironmentContext,
): Promise<Map<string, string>> {
  const links = serviceEnvironment(context.services, pod.metadata.namespace, pod.spec.enableServiceLinks ?? true);
  const variables = new Map<string, string>();
  for (const source of container.envFrom ?? []) {
    const ref = source.configMapRef ?? source.secretRef;
    if (ref === undefined) continue;
    const kind = source.configMapRef !== undefined ? "ConfigMap" : "Secret";
    const data = await dataOf(kind, ref.name ?? "", ref.optional === true, pod, context);
    if (data === undefined) continue;
    const invalid: string[] = [];
    for (const [key, value] of data) {
      const name = `${source.prefix ?? ""}${key}`;
      if (isVariableName(name)) variables.set(name, value);
      else invalid.push(name);
    }
    if (invalid.length > 0) context.onInvalidNames(kind, `${pod.metadata.namespace}/${ref.name ?? ""}`, invalid.sort());
  }
  const lookup = (name: string): string | undefined => variables.get(name) ?? links.get(name);
  for (const variable of container.env ?? []) {
    const from = variable.valueFrom;
    let value: string | undefined;
    if (variable.value !== undefined && variable.value !== "") value = expand(variable.value, lookup);
    else if (from?.fieldRef !== undefined) value = fieldValue(pod, from.fieldRef.fieldPath, context);
    else if (from?.resourceFieldRef !== undefined) value = resourceValue(pod, from.resourceFieldRef, container.name, context);
    else if (from?.configMapKeyRef !== undefined) value = await keyOf("ConfigMap", from.configMapKeyRef, pod, context);
    else if (from?.secretKeyRef !== undefined) value = await keyOf("Secret", from.secretKeyRef, pod, context);
    else value = "";
    if (value !== undefined) variables.set(variable.name, value);
  }
  for (const [name, value] of links) if (!variables.has(name)) variables.set(name, value);
  return variables;
}

interface KeyRef {
  name?: string;
  key: string;
  optional?: boolean;
}

/** @returns undefined when the key is missing and optional */
async function keyOf(
  kind: "ConfigMap" | "Secret",
  ref: KeyRef,
  pod: NodePod,
  context: EnvironmentContext,
): Promise<string | undefined> {
  const data = await dataOf(kind, ref.name ?? "", ref.optional === true, pod, context);
  const value = data?.get(ref.key);
  if (value !== undefined || ref.optional === true) return value;
  throw new Error(`couldn't find key ${ref.key} in ${kind} ${pod.metadata.namespace}/${ref.name ?? ""}`);
}

async function dataOf(
  kind: "ConfigMap" | "Secret",
  name: string,
  optional: boolean,
  pod: NodePod,
  context: EnvironmentContext,
): Promise<Map<string, string> | undefined> {
  try {
    if (kind === "ConfigMap") {
      const object = await context.objects.configMap(pod.metadata.namespace, name);
      return new Map(Object.entries(object.data ?? {}));
    }
    const object = await context.objects.secret(pod.metadata.namespace, name);
    return new Map(Object.entries(object.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]));
  } catch (err) {
    if (optional && isNotFound(err)) return undefined;
    throw err;
  }
}

const variableName = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;

function isVariableName(name: string): boolean {
  return variableName.test(name) && name !== "." && !name.startsWith("..");
}

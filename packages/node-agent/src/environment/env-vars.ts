import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { chunksOf, type Steps, sortedInSteps } from "@coxswain/apimachinery/process/event-loop/steps";
import { runSteps, type Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { AnyContainer, NodePod } from "../pod/pod.ts";
import type { PodObjects } from "../pod/pod-objects.ts";
import { type DownwardContext, fieldValue, resourceValue } from "./downward-api-env.ts";
import { checkLength, expand } from "./expansion.ts";
import { serviceEnvironment } from "./service-links.ts";

interface EnvironmentContext extends DownwardContext {
  objects: PodObjects;
  services: readonly Service[];
  /** Thousands of variables are made in; absent: at once. */
  turns?: Turns | undefined;
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
  const links = await runSteps(
    context.turns,
    serviceEnvironment(context.services, pod.metadata.namespace, pod.spec.enableServiceLinks ?? true),
  );
  const variables = new Map<string, string>();
  for (const source of container.envFrom ?? []) {
    const ref = source.configMapRef ?? source.secretRef;
    if (ref === undefined) continue;
    const kind = source.configMapRef !== undefined ? "ConfigMap" : "Secret";
    const data = await dataOf(kind, ref.name ?? "", ref.optional === true, pod, context);
    if (data === undefined) continue;
    const invalid = await runSteps(context.turns, addAll(variables, { data, kind, prefix: source.prefix ?? "" }));
    if (invalid.length > 0) context.onInvalidNames(kind, `${pod.metadata.namespace}/${ref.name ?? ""}`, invalid);
  }
  const lookup = (name: string): string | undefined => variables.get(name) ?? links.get(name);
  let length = 0;
  /** Read once, not for each of thousands of keys. */
  const known = new Map<string, Data | undefined>();
  for (const variable of container.env ?? []) {
    const from = variable.valueFrom;
    const ref = from?.configMapKeyRef ?? from?.secretKeyRef;
    const kind = from?.configMapKeyRef === undefined ? "Secret" : "ConfigMap";
    const source = ref && `${kind} ${ref.optional === true} ${ref.name ?? ""}`;
    if (source !== undefined && !known.has(source))
      known.set(source, await dataOf(kind, ref?.name ?? "", ref?.optional === true, pod, context));
    let value: string | undefined;
    if (variable.value !== undefined && variable.value !== "") value = expand(variable.value, lookup);
    else if (from?.fieldRef !== undefined) value = fieldValue(pod, from.fieldRef.fieldPath, context);
    else if (from?.resourceFieldRef !== undefined) value = resourceValue(pod, from.resourceFieldRef, container.name, context);
    else if (ref !== undefined && source !== undefined) value = keyIn(known.get(source), kind, ref, pod);
    else value = "";
    if (value === undefined) continue;
    variables.set(variable.name, value);
    length += value.length;
    checkLength(length);
  }
  for (const [name, value] of links) if (!variables.has(name)) variables.set(name, value);
  return variables;
}

interface DataSource {
  data: Data;
  kind: "ConfigMap" | "Secret";
  prefix: string;
}

const keysPerStep = 2048;

/**
 * Adds a variable for each key.
 * @returns names that no variable may have, in order
 * @throws Error when the variables are longer than any program's may be: a ConfigMap can be named with a thousand prefixes
 */
function* addAll(variables: Map<string, string>, { data, kind, prefix }: DataSource): Steps<string[]> {
  const invalid: string[] = [];
  let length = 0;
  for (const [name, value] of variables) length += name.length + value.length;
  for (const keys of chunksOf(Object.keys(data), keysPerStep)) {
    for (const key of keys) {
      const name = `${prefix}${key}`;
      if (!isVariableName(name)) {
        invalid.push(name);
        continue;
      }
      const value = valueIn(kind, data[key]!);
      if (!variables.has(name)) length += name.length + value.length;
      variables.set(name, value);
    }
    checkLength(length);
    yield;
  }
  return yield* sortedInSteps(invalid, (a, b) => (a < b ? -1 : 1));
}

interface KeyRef {
  name?: string;
  key: string;
  optional?: boolean;
}

type Data = Readonly<Record<string, string>>;

/** @returns undefined when the key is missing and optional */
function keyIn(data: Data | undefined, kind: "ConfigMap" | "Secret", ref: KeyRef, pod: NodePod): string | undefined {
  if (data !== undefined && Object.hasOwn(data, ref.key)) return valueIn(kind, data[ref.key]!);
  if (ref.optional === true) return undefined;
  throw new Error(`couldn't find key ${ref.key} in ${kind} ${pod.metadata.namespace}/${ref.name ?? ""}`);
}

/** A value of the data of a ConfigMap or Secret. */
const valueIn = (kind: "ConfigMap" | "Secret", value: string): string =>
  kind === "ConfigMap" ? value : Buffer.from(value, "base64").toString("utf8");

/** @returns the data as it is stored; undefined when the object is missing and optional */
async function dataOf(
  kind: "ConfigMap" | "Secret",
  name: string,
  optional: boolean,
  pod: NodePod,
  context: EnvironmentContext,
): Promise<Data | undefined> {
  const { objects } = context;
  const { namespace } = pod.metadata;
  try {
    const { data = {} } = await (kind === "ConfigMap" ? objects.configMap(namespace, name) : objects.secret(namespace, name));
    return data;
  } catch (err) {
    if (optional && isNotFound(err)) return undefined;
    throw err;
  }
}

const variableName = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;

function isVariableName(name: string): boolean {
  return variableName.test(name) && name !== "." && !name.startsWith("..");
}

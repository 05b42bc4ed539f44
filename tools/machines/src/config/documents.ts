import { yamlDocuments } from "@coxswain/apimachinery/objects/codec/yaml";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { UsageFailure } from "../failure.ts";
import { type Document, type Fields, type Kind, kinds, type Shape } from "./fields.ts";

/** The documents of a configuration file in kubeadm's form. */
export interface Documents {
  readonly InitConfiguration?: Document<"InitConfiguration">;
  readonly ClusterConfiguration?: Document<"ClusterConfiguration">;
  readonly JoinConfiguration?: Document<"JoinConfiguration">;
  /** Passed to the kubelets unchanged; the kubelet validates it. */
  readonly KubeletConfiguration?: Readonly<Record<string, unknown>>;
}

const group = "kubeadm.k8s.io";
const version = `${group}/v1beta3`;

/**
 * Reads a configuration file. A field that is not supported is an error that names it; all errors are reported together.
 * @throws UsageFailure with a line for each fault
 */
export function readDocuments(text: string, file: string): Documents {
  const faults: string[] = [];
  const documents: Record<string, unknown> = {};
  for (const document of parse(text, file)) {
    if (document === null) continue; // an empty document between two separators
    if (!isMap(document)) {
      faults.push(`${file}: a document is not a map`);
      continue;
    }
    const { apiVersion, kind, ...rest } = document;
    const name = String(kind);
    const fault = faultOfKind(String(apiVersion), name);
    if (fault !== undefined) faults.push(`${file}: ${fault}`);
    else if (name in documents) faults.push(`${file}: there are two documents of kind ${name}`);
    else if (name === "KubeletConfiguration") documents[name] = document;
    else {
      documents[name] = rest;
      check(rest, kinds[name as Kind], name, faults); // cast: checked to be a key
    }
  }
  if (faults.length > 0) throw new UsageFailure(faults);
  return documents;
}

function parse(text: string, file: string): unknown[] {
  try {
    return yamlDocuments(text);
  } catch (err) {
    throw new UsageFailure(`${file}: ${messageOf(err)}`);
  }
}

function faultOfKind(apiVersion: string, kind: string): string | undefined {
  if (kind === "KubeletConfiguration" && apiVersion === "kubelet.config.k8s.io/v1beta1") return undefined;
  if (kind === "KubeProxyConfiguration")
    return "KubeProxyConfiguration is refused: Services are those of coxswain-services, or of an add-on that you apply";
  if (!Object.hasOwn(kinds, kind)) return `kind ${JSON.stringify(kind)} is not known (${Object.keys(kinds).join(", ")})`;
  if (apiVersion.startsWith(`${group}/`) && apiVersion !== version)
    return `${kind} is of ${apiVersion}; migrate it to ${version}: kubeadm config migrate`;
  return apiVersion === version ? undefined : `${kind} has apiVersion ${JSON.stringify(apiVersion)} in place of ${version}`;
}

/** Removes fields without a value (`networking:`), which count as absent. */
function check(value: unknown, shape: Shape, path: string, faults: string[]): void {
  const wrong = (kind: string): void => void faults.push(`${path}: is not a ${kind}`);
  if (shape === "strings") {
    if (!Array.isArray(value) || !value.every((entry) => typeof entry === "string")) wrong("list of strings");
    return;
  }
  if (shape === "flags") {
    if (!isMap(value) || !Object.values(value).every((entry) => typeof entry === "string"))
      wrong("map of flags' names, without dashes, to strings");
    return;
  }
  if (typeof shape === "string") {
    if (typeof value !== shape) wrong(shape);
    return;
  }
  if (isRefused(shape)) {
    faults.push(`${path}: is refused: ${shape.refused}`);
    return;
  }
  if (isList(shape)) {
    if (!Array.isArray(value)) wrong("list");
    else for (const [i, entry] of value.entries()) check(entry, shape.list, `${path}[${i}]`, faults);
    return;
  }
  if (!isMap(value)) {
    wrong("map");
    return;
  }
  for (const [name, field] of Object.entries(value)) {
    const inside = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (inside === undefined) faults.push(`${path}.${name}: no such field in ${version}`);
    else if (field === null) delete value[name];
    else check(field, inside, `${path}.${name}`, faults);
  }
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
type Composite = Exclude<Shape, string>;
const isRefused = (shape: Composite): shape is { readonly refused: string } =>
  "refused" in shape && typeof shape.refused === "string";
const isList = (shape: Composite): shape is { readonly list: Fields } => "list" in shape && typeof shape.list === "object";

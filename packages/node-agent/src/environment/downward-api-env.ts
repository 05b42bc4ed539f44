import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Container } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { NodePod } from "../pod/pod.ts";
import { quantityOf, type ResourceList } from "../pod/pod-resources.ts";

/** Values of the downward API that are not in the Pod object. */
export interface DownwardContext {
  nodeName: string;
  hostIps: readonly string[];
  podIps: readonly string[];
  /** The node's allocatable resources, the default for containers without a limit. */
  allocatable: ResourceList;
}

/** Pure: the value of a `fieldRef`. @throws Error for an unsupported path. Source: pkg/fieldpath, kubelet_pods.go */
export function fieldValue(pod: NodePod, path: string, context: DownwardContext): string {
  const keyed = /^(metadata\.(?:labels|annotations))\['(.+)'\]$/.exec(path);
  if (keyed !== null) {
    const map = keyed[1] === "metadata.labels" ? pod.metadata.labels : pod.metadata.annotations;
    const key = keyed[2]!;
    return map !== undefined && Object.hasOwn(map, key) ? map[key]! : "";
  }
  switch (path) {
    case "metadata.name":
      return pod.metadata.name;
    case "metadata.namespace":
      return pod.metadata.namespace;
    case "metadata.uid":
      return pod.metadata.uid;
    case "metadata.labels":
      return formatMap(pod.metadata.labels);
    case "metadata.annotations":
      return formatMap(pod.metadata.annotations);
    case "spec.nodeName":
      return pod.spec.nodeName ?? context.nodeName;
    case "spec.serviceAccountName":
      return pod.spec.serviceAccountName ?? "";
    case "status.hostIP":
      return context.hostIps[0] ?? "";
    case "status.podIP":
      return context.podIps[0] ?? "";
    case "status.podIPs":
      return context.podIps.join(",");
    default:
      throw new Error(`unsupported fieldPath: ${path}`);
  }
}

/** `key="value"` lines, sorted, quoted as in Go. */
function formatMap(map: Readonly<Record<string, string>> | undefined): string {
  if (map === undefined) return "";
  return texts.getOrInsertComputed(map, () =>
    Object.keys(map)
      .sort()
      .map((key) => `${key}=${goQuote(map[key]!)}`)
      .join("\n"),
  );
}

/** A pure cache: thousands of variables or files may show the labels of one Pod. */
const texts = new WeakMap<Readonly<Record<string, string>>, string>();

/** A pure cache: each of thousands of variables or files may name one of thousands of containers. */
const containersByName = new WeakMap<NodePod["spec"], ReadonlyMap<string, Container>>();

function byName({ containers, initContainers = [] }: NodePod["spec"]): ReadonlyMap<string, Container> {
  // Of two with one name, the container counts before the init container.
  return new Map([...initContainers, ...containers].map((container) => [container.name, container]));
}

export interface ResourceFieldRef {
  containerName?: string;
  resource: string;
  divisor?: string;
}

/** Pure: the value of a `resourceFieldRef` in units of its divisor, rounded up. @throws Error for an unsupported resource */
export function resourceValue(pod: NodePod, ref: ResourceFieldRef, containerName: string, context: DownwardContext): string {
  const name = ref.containerName || containerName;
  const container = containersByName.getOrInsertComputed(pod.spec, byName).get(name);
  if (container === undefined) throw new Error(`container ${name} not found`);
  const dot = ref.resource.indexOf(".");
  const kind = ref.resource.slice(0, dot);
  const resource = ref.resource.slice(dot + 1);
  const known =
    resource === "cpu" || resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-");
  if ((kind !== "limits" && kind !== "requests") || !known) throw new Error(`unsupported container resource : ${ref.resource}`);
  const own = kind === "limits" ? container.resources?.limits : container.resources?.requests;
  let amount = quantityOf(own, resource);
  if (kind === "limits" && amount.isZero) amount = quantityOf(context.allocatable, resource);
  const text = ref.divisor === undefined || ref.divisor === "" || ref.divisor === "0" ? "1" : ref.divisor;
  const divisor = Quantity.parse(text);
  if (resource === "cpu") return String(Math.ceil(Number(amount.milliValue()) / Number(divisor.milliValue())));
  return String(Math.ceil(Number(amount.value()) / Number(divisor.value())));
}

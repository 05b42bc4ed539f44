/**
 * `metadata.selfLink` for clients of before 1.16, while the gate RemoveSelfLink is off: the path of each object that is
 * answered, and of each list. It is put in on the way out, never stored.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/response.go setObjectSelfLink, namer.go
 */
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Entry } from "../storage/storage.ts";
import type { Call } from "./env.ts";

/** Whether answers name their paths. */
export function namesLinks({ env }: Call): boolean {
  return !env.services.featureEnabled("RemoveSelfLink");
}

/** An object of this request's resource with the path it is found at. */
export function linkedEntry(call: Call, entry: Entry): Entry {
  return namesLinks(call) ? entry.with(withLink(call, entry.object())) : entry;
}

/** The same for an answer that is not stored; one without a name has no path. */
export function withOwnLink(call: Call, object: KubeObject): KubeObject {
  return namesLinks(call) && (object.metadata?.name ?? "") !== "" ? withLink(call, object) : object;
}

/** Of a list: its own path, and that of each item. */
export function linkedList(call: Call, entries: Entry[]): { entries: Entry[]; selfLink?: string } {
  if (!namesLinks(call)) return { entries };
  const { definition } = call.served;
  const inNamespace = definition.namespaced && call.namespace !== "" ? `/namespaces/${call.namespace}` : "";
  return {
    entries: entries.map((entry) => linkedEntry(call, entry)),
    selfLink: `${rootOf(call)}${inNamespace}/${definition.resource}`,
  };
}

function withLink(call: Call, object: KubeObject): KubeObject {
  const { definition } = call.served;
  const { name = "", namespace = "" } = object.metadata;
  const inNamespace = definition.namespaced ? `/namespaces/${namespace || call.namespace}` : "";
  const below = call.subresource === "" ? "" : `/${call.subresource}`;
  const selfLink = `${rootOf(call)}${inNamespace}/${definition.resource}/${name}${below}`;
  return { ...object, metadata: { ...object.metadata, selfLink } };
}

function rootOf({ served: { kind } }: Call): string {
  return kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
}

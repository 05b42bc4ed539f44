/**
 * Sets `metadata.selfLink` of returned objects and lists while the gate RemoveSelfLink is off, for clients
 * older than 1.16. Never stored.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/response.go setObjectSelfLink, namer.go
 */
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Entry } from "../storage/storage.ts";
import type { Call } from "./env.ts";

/** Whether responses have self links. */
export function namesLinks({ env }: Call): boolean {
  return !env.services.featureEnabled("RemoveSelfLink");
}

/** The entry with its self link, if enabled. */
export function linkedEntry(call: Call, entry: Entry): Entry {
  return namesLinks(call) ? entry.with(withLink(call, entry.object())) : entry;
}

/** As `linkedEntry`, for an object that is not stored; without a name it has no link. */
export function withOwnLink(call: Call, object: KubeObject): KubeObject {
  return namesLinks(call) && (object.metadata?.name ?? "") !== "" ? withLink(call, object) : object;
}

/** The list with self links of the list and of each item, if enabled. */
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

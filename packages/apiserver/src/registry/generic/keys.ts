import { badRequest } from "@coxswain/apimachinery/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";

/**
 * The storage key of an object.
 * @throws BadRequest when a part is missing or could not be a part of a path.
 * Source: k8s.io/apiserver pkg/registry/generic/registry/store.go NamespaceKeyFunc, NoNamespaceKeyFunc
 */
export function storageKey(namespaced: boolean, namespace: string, name: string): string {
  if (namespaced && namespace === "") throw badRequest("Namespace parameter required.");
  if (name === "") throw badRequest("Name parameter required.");
  const faults = pathSegmentFaults(name);
  if (faults.length > 0) throw badRequest(`Name parameter invalid: ${goQuote(name)}: ${faults.join(";")}`);
  if (!namespaced) return name;
  const namespaceFaults = pathSegmentFaults(namespace);
  if (namespaceFaults.length > 0) {
    throw badRequest(`Namespace parameter invalid: ${goQuote(namespace)}: ${namespaceFaults.join(";")}`);
  }
  return `${namespace}/${name}`;
}

/** What a list or watch has to read: all, one namespace, or (asked for by `metadata.name=`) one object. */
export function storagePrefix(namespaced: boolean, namespace: string, fields: FieldSelector | undefined): string {
  const all = namespaced && namespace !== "" ? `${namespace}/` : "";
  if (all !== "" && pathSegmentFaults(namespace).length > 0)
    throw badRequest(`Namespace parameter invalid: ${goQuote(namespace)}`);
  const name = fields?.requiresExact("metadata.name");
  if (name === undefined || name === "" || pathSegmentFaults(name).length > 0) return all;
  if (!namespaced) return name;
  return namespace === "" ? all : all + name;
}

/** Why a text cannot be a segment of a path. Source: k8s.io/apimachinery pkg/api/validation/path */
export function pathSegmentFaults(name: string): string[] {
  if (name === "." || name === "..") return [`may not be '${name}'`];
  if (!name.includes("/") && !name.includes("%")) return [];
  return ["/", "%"].filter((character) => name.includes(character)).map((character) => `may not contain '${character}'`);
}

import { badRequest } from "@coxswain/apimachinery/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import { pathSegmentFaults } from "@coxswain/apimachinery/validation/dns";

/**
 * Storage key of an object, relative to the resource: `<namespace>/<name>` or `<name>`.
 * @throws BadRequest when a part is missing or not a valid path segment
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

/** Key prefix of a list or watch: all objects, one namespace, or one object when the field selector has `metadata.name=`. */
export function storagePrefix(namespaced: boolean, namespace: string, fields: FieldSelector | undefined): string {
  const all = namespaced && namespace !== "" ? `${namespace}/` : "";
  if (all !== "" && pathSegmentFaults(namespace).length > 0)
    throw badRequest(`Namespace parameter invalid: ${goQuote(namespace)}`);
  const name = fields?.requiresExact("metadata.name");
  if (name === undefined || name === "" || pathSegmentFaults(name).length > 0) return all;
  if (!namespaced) return name;
  return namespace === "" ? all : all + name;
}

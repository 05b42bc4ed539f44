/**
 * Matches a write against a webhook's rules, namespace selector and object selector.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/{generic/webhook,predicates}
 */
import type { KubeObject, LabelSelector as LabelSelectorObject } from "@coxswain/apimachinery/objects/meta/types";
import type { RuleWithOperations } from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { AdmissionAttributes } from "../plugin.ts";

/** A resource in one of its served versions. */
export interface ResourceVersion {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
}

interface WebhookConditions {
  readonly rules?: readonly RuleWithOperations[];
  readonly matchPolicy?: string;
  readonly namespaceSelector?: LabelSelectorObject;
  readonly objectSelector?: LabelSelectorObject;
}

/**
 * @param equivalents other versions the resource is served in, for matchPolicy `Equivalent`
 * @returns the version in which the webhook expects the object; undefined when no rule matches.
 */
export function matchingVersion(
  webhook: WebhookConditions,
  attributes: AdmissionAttributes,
  equivalents: readonly ResourceVersion[],
): ResourceVersion | undefined {
  // Webhooks must not be able to prevent their own removal.
  if (isWebhookConfiguration(attributes)) return undefined;
  const own = { ...attributes.resource, kind: attributes.kind.kind };
  const { rules = [] } = webhook;
  if (rules.some((rule) => ruleMatches(rule, attributes, own))) return own;
  if (webhook.matchPolicy === "Exact") return undefined;
  // The first matching rule determines the version.
  for (const rule of rules) {
    const found = equivalents.find((candidate) => ruleMatches(rule, attributes, candidate));
    if (found !== undefined) return found;
  }
  return undefined;
}

function isWebhookConfiguration({ resource }: AdmissionAttributes): boolean {
  return (
    resource.group === "admissionregistration.k8s.io" &&
    (resource.resource === "mutatingwebhookconfigurations" || resource.resource === "validatingwebhookconfigurations")
  );
}

function ruleMatches(rule: RuleWithOperations, attributes: AdmissionAttributes, target: ResourceVersion): boolean {
  const has = (list: readonly string[] | undefined, wanted: string): boolean =>
    list !== undefined && (list.includes("*") || list.includes(wanted));
  return (
    has(rule.operations, attributes.operation) &&
    has(rule.apiGroups, target.group) &&
    has(rule.apiVersions, target.version) &&
    scopeMatches(rule.scope, attributes) &&
    (rule.resources ?? []).some((pattern) => resourceMatches(pattern, target.resource, attributes.subresource))
  );
}

/** `pods`, `pods/status`, `pods/*`, `*\/scale`, `*` (all but subresources), `*\/*`. */
function resourceMatches(pattern: string, resource: string, subresource: string): boolean {
  const [wanted = "", sub = ""] = pattern.split("/");
  return (wanted === "*" || wanted === resource) && (sub === "*" || sub === subresource);
}

/** Namespaces are cluster-scoped although their admission attributes have a namespace. */
function scopeMatches(scope: string | undefined, { namespace, resource }: AdmissionAttributes): boolean {
  if (scope === undefined || scope === "" || scope === "*") return true;
  const namespaced = namespace !== "" && !(resource.group === "" && resource.resource === "namespaces");
  return scope === (namespaced ? "Namespaced" : "Cluster");
}

/** The selectors of a webhook, each parsed on first use. */
export interface WebhookSelectors {
  readonly namespace: LabelSelector;
  readonly object: LabelSelector;
}

/** To be called once for a webhook: every write is matched against all of them. */
export function selectorsOf({ namespaceSelector, objectSelector }: WebhookConditions): WebhookSelectors {
  let namespace: LabelSelector | undefined;
  let object: LabelSelector | undefined;
  return {
    get namespace() {
      namespace ??= LabelSelector.fromObject(namespaceSelector ?? {});
      return namespace;
    },
    get object() {
      object ??= LabelSelector.fromObject(objectSelector ?? {});
      return object;
    },
  };
}

/** @param namespaceLabels labels of the object's namespace; undefined for cluster-scoped objects, which always match. */
export function selectorsMatch(
  selectors: WebhookSelectors,
  attributes: AdmissionAttributes,
  namespaceLabels: Readonly<Record<string, string>> | undefined,
): boolean {
  if (namespaceLabels !== undefined && !selectors.namespace.matches(namespaceLabels)) return false;
  // The options object of CONNECT has no labels.
  const candidates = attributes.operation === "CONNECT" ? [] : [attributes.object, attributes.oldObject];
  const objects = candidates.filter((object) => object !== undefined);
  return selectors.object.empty || objects.some((object) => selectors.object.matches(labelsOf(object)));
}

function labelsOf(object: KubeObject): Readonly<Record<string, string>> {
  return object.metadata?.labels ?? {};
}

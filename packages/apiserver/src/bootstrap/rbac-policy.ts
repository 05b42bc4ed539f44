/**
 * Reconciles the default roles and bindings with those of 1.23. Missing rules and subjects are added, additions by
 * administrators are kept, and an object with the annotation autoupdate `false` is not changed.
 * Source: pkg/registry/rbac/rest/storage_rbac.go, k8s.io/component-helpers auth/rbac/reconciliation
 */

import type { Client } from "@coxswain/apimachinery/client/client";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual, semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  clusterRoleBindings as clusterRoleBindingsRef,
  clusterRoles as clusterRolesRef,
  roleBindings as roleBindingsRef,
  roles as rolesRef,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { forEachLimited } from "@coxswain/apimachinery/process/event-loop/for-each-limited";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { uncoveredRules } from "../registry/rbac/escalation.ts";
import { attempts, ensure } from "./ensure.ts";
import {
  type ClusterRoleRow,
  clusterRoleBindings,
  clusterRoles,
  type RuleRow,
  roleBindings,
  roles,
  type SubjectRow,
} from "./rbac-policy-data.ts";

const autoUpdate = "rbac.authorization.kubernetes.io/autoupdate";
const bootstrapLabels = { "kubernetes.io/bootstrapping": "rbac-defaults" };
const aggregateLabel = "rbac.authorization.k8s.io/aggregate-to-";
const rbacGroup = "rbac.authorization.k8s.io";
const mostAtOnce = 8;

interface Role extends KubeObject {
  rules?: RuleRow[] | null;
  aggregationRule?: { clusterRoleSelectors?: object[] };
}
interface Subject {
  kind: string;
  apiGroup?: string;
  name: string;
  namespace?: string;
}
interface Binding extends KubeObject {
  subjects?: Subject[];
  roleRef: { apiGroup: string; kind: string; name: string };
}

/** The rules of every node regardless of its pods; the Node authorizer grants them without a binding. */
export const nodeRules: readonly RuleRow[] = clusterRoles.find(({ name }) => name === "system:node")?.rules ?? [];

/** @param featureEnabled selects rules and roles that belong to feature gates */
export async function ensureRbacPolicy(
  client: Client,
  featureEnabled: (gate: string) => boolean,
  signal?: AbortSignal,
): Promise<void> {
  const rows = clusterRoles.filter(({ onlyWith = [] }) => onlyWith.every(featureEnabled));
  const desiredRoles = rows.map((row) => clusterRoleOf(row, featureEnabled));
  await forEachLimited(desiredRoles, mostAtOnce, (desired) =>
    ensure(client, clusterRolesRef, desired, bringRole(desired), signal),
  );
  await forEachLimited(allClusterRoleBindings(rows), mostAtOnce, (desired) =>
    ensureBinding(client, clusterRoleBindingsRef, desired, signal),
  );
  await forEachLimited(roles, mostAtOnce, ({ namespace, name, rules }) => {
    const desired: Role = { metadata: metadataOf(name, namespace), rules };
    return ensure(client, rolesRef, desired, bringRole(desired), signal);
  });
  await forEachLimited(roleBindings, mostAtOnce, ({ namespace, name, role, subjects }) =>
    ensureBinding(client, roleBindingsRef, bindingOf(name, "Role", role, subjects, namespace), signal),
  );
}

function metadataOf(name: string, namespace?: string, labels: Record<string, string> = {}): Role["metadata"] {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: { ...bootstrapLabels, ...labels },
    annotations: { [autoUpdate]: "true" },
  };
}

function clusterRoleOf(row: ClusterRoleRow, featureEnabled: (gate: string) => boolean): Role {
  const labels = row.aggregateTo === undefined ? {} : { [aggregateLabel + row.aggregateTo]: "true" };
  const metadata = metadataOf(row.name, undefined, labels);
  if (row.aggregateFrom === undefined) return { metadata, rules: rulesOf(row, featureEnabled) };
  return {
    metadata,
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregateLabel + row.aggregateFrom]: "true" } }] },
  };
}

function rulesOf({ rules = [], gated = {} }: ClusterRoleRow, featureEnabled: (gate: string) => boolean): RuleRow[] {
  const extra = Object.entries(gated).filter(([gate]) => featureEnabled(gate));
  return [...rules, ...extra.flatMap(([, rows]) => rows)];
}

/** Binds each controller's role to its service account in kube-system. */
function allClusterRoleBindings(rows: readonly ClusterRoleRow[]): Binding[] {
  const prefix = "system:controller:";
  const ofControllers = rows
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name }) =>
      bindingOf(name, "ClusterRole", name, [
        { kind: "ServiceAccount", namespace: "kube-system", name: name.slice(prefix.length) },
      ]),
    );
  return [
    ...clusterRoleBindings.map(({ name, role, subjects }) => bindingOf(name, "ClusterRole", role, subjects)),
    ...ofControllers,
  ];
}

function bindingOf(name: string, kind: string, role: string, subjects: readonly SubjectRow[], namespace?: string): Binding {
  return {
    metadata: metadataOf(name, namespace),
    subjects: subjects.map((subject) => (subject.kind === "ServiceAccount" ? subject : { ...subject, apiGroup: rbacGroup })),
    roleRef: { apiGroup: rbacGroup, kind, name: role },
  };
}

function bringRole(desired: Role) {
  return (existing: Role): Role | undefined => {
    if (existing.metadata.annotations?.[autoUpdate] === "false") return undefined;
    const metadata = bringMetadata(existing, desired);
    const have = existing.rules ?? [];
    // An aggregated role is desired without rules: the aggregation controller sets them.
    const wanted = desired.rules ?? [];
    const missing = deepEqual(have, wanted) ? [] : atOnce(uncoveredRules(have, wanted));
    const aggregationRule = bringAggregation(existing.aggregationRule, desired.aggregationRule);
    if (metadata === undefined && missing.length === 0 && aggregationRule === existing.aggregationRule) return undefined;
    const { aggregationRule: _, ...role } = existing;
    return {
      ...role,
      ...(metadata === undefined ? {} : { metadata }),
      ...(missing.length === 0 ? {} : { rules: [...have, ...missing] }),
      ...(aggregationRule === undefined ? {} : { aggregationRule }),
    };
  };
}

/** Adds the selectors that are missing. A role that is not to be aggregated has no aggregation rule. @returns `existing` when it is right */
function bringAggregation(existing: Role["aggregationRule"], desired: Role["aggregationRule"]): Role["aggregationRule"] {
  const have = existing?.clusterRoleSelectors ?? [];
  const missing = desired?.clusterRoleSelectors?.filter((selector) => !have.some((one) => semanticEqual(one, selector)));
  if (missing === undefined || missing.length === 0) return desired && existing;
  return { ...existing, clusterRoleSelectors: [...have, ...missing] };
}

/** @returns undefined when no label or annotation is missing */
function bringMetadata(existing: KubeObject, desired: KubeObject): KubeObject["metadata"] | undefined {
  const missing = (field: "labels" | "annotations"): boolean =>
    Object.keys(desired.metadata[field] ?? {}).some((key) => !Object.hasOwn(existing.metadata[field] ?? {}, key));
  if (!missing("labels") && !missing("annotations")) return undefined;
  return {
    ...existing.metadata,
    labels: { ...desired.metadata.labels, ...existing.metadata.labels },
    annotations: { ...desired.metadata.annotations, ...existing.metadata.annotations },
  };
}

/** Source: k8s.io/component-helpers auth/rbac/reconciliation/reconcile_rolebindings.go */
async function ensureBinding(
  client: Client,
  ref: typeof roleBindingsRef,
  desired: Binding,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    let wrong: Binding | undefined;
    const bring = (existing: Binding): Binding | undefined => {
      wrong = undefined;
      if (existing.metadata.annotations?.[autoUpdate] === "false") return undefined;
      if (existing.roleRef.kind !== desired.roleRef.kind || existing.roleRef.name !== desired.roleRef.name) {
        wrong = existing;
        return undefined;
      }
      const have = existing.subjects ?? [];
      const missing = (desired.subjects ?? []).filter((subject) => !have.some((candidate) => sameSubject(candidate, subject)));
      const metadata = bringMetadata(existing, desired);
      if (missing.length === 0 && metadata === undefined) return undefined;
      return { ...existing, ...(metadata === undefined ? {} : { metadata }), subjects: [...have, ...missing] };
    };
    await ensure<Binding>(client, ref, desired, bring, signal);
    if (wrong === undefined) return;
    const { namespace, name = "", uid = "" } = wrong.metadata;
    if (attempt === attempts) throw new Error(`binding ${name} still refers to another role after ${attempts} attempts`);
    // roleRef is immutable: the binding is deleted, and created again by the next attempt.
    try {
      await client.delete(ref, { namespace, name }, { preconditions: { uid }, ...(signal && { signal }) });
    } catch (err) {
      if (!isNotFound(err) && !isConflict(err)) throw err; // another server was faster
    }
  }
}

function sameSubject(a: Subject, b: Subject): boolean {
  return a.kind === b.kind && a.name === b.name && (a.namespace ?? "") === (b.namespace ?? "");
}

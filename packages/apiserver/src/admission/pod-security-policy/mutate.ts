/**
 * Sets what a policy requires and a pod leaves unset. Values set in the pod are kept, even if the policy forbids them.
 * Source: pkg/security/podsecuritypolicy/provider.go MutatePod, and the Generate of each strategy
 */

import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Capabilities, PodSecurityContext, SecurityContext } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { IDRange, PodSecurityPolicy } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";
import { entriesOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { PodObject } from "../plugins/pod-of.ts";
import { type AnyContainer, effectiveContext } from "./effective.ts";
import { setAppArmor, setSeccomp } from "./profiles.ts";

export type Policy = PodSecurityPolicy & KubeObject;

interface RangeRule {
  readonly rule?: string;
  readonly ranges?: readonly IDRange[];
}

/** Applies the policy's defaults; modifies `pod` in place. */
export function mutatePod(policy: Policy, pod: PodObject): void {
  const { spec } = policy;
  const had: PodSecurityContext = pod.spec.securityContext ?? {};
  const group = smallest(spec.supplementalGroups);
  const added = withoutUndefined<PodSecurityContext>({
    supplementalGroups: had.supplementalGroups ?? (group === undefined ? undefined : [group]),
    fsGroup: had.fsGroup ?? smallest(spec.fsGroup),
    seLinuxOptions: had.seLinuxOptions ?? requiredLabels(policy),
  });
  if (Object.keys(added).length > 0) pod.spec.securityContext = { ...had, ...added };
  setSeccomp(policy, pod);
  const runtimeClass = spec.runtimeClass?.defaultRuntimeClassName;
  if (pod.spec.runtimeClassName === undefined && runtimeClass !== undefined) pod.spec.runtimeClassName = runtimeClass;
  const containers: AnyContainer[] = [
    ...(pod.spec.initContainers ?? []),
    ...(pod.spec.containers ?? []),
    ...(pod.spec.ephemeralContainers ?? []),
  ];
  for (const container of containers) mutateContainer(policy, pod, container);
}

function mutateContainer(policy: Policy, pod: PodObject, container: AnyContainer): void {
  const { spec } = policy;
  const had = effectiveContext(pod.spec, container);
  const user = had.runAsUser ?? smallest(spec.runAsUser);
  const mustNotBeRoot = spec.runAsUser.rule === "MustRunAsNonRoot" && had.runAsNonRoot === undefined && user === undefined;
  const mayEscalate = spec.allowPrivilegeEscalation ?? true;
  const wanted = withoutUndefined<SecurityContext>({
    runAsUser: user,
    runAsGroup: had.runAsGroup ?? smallest(spec.runAsGroup),
    seLinuxOptions: had.seLinuxOptions ?? requiredLabels(policy),
    runAsNonRoot: mustNotBeRoot ? true : had.runAsNonRoot,
    capabilities: capabilitiesOf(policy, container),
    readOnlyRootFilesystem: had.readOnlyRootFilesystem ?? (spec.readOnlyRootFilesystem ? true : undefined),
    allowPrivilegeEscalation:
      had.allowPrivilegeEscalation ?? spec.defaultAllowPrivilegeEscalation ?? (mayEscalate ? undefined : false),
  });
  setAppArmor(policy, pod, container);
  // Leaves the container unset where it inherits the same value from the pod.
  const added = entriesOf(wanted).filter(([name, value]) => !semanticEqual(had[name], value));
  if (added.length > 0) container.securityContext = { ...container.securityContext, ...Object.fromEntries(added) };
}

/** The minimum of the first range when the rule is MustRunAs. */
function smallest(options: RangeRule | undefined): number | undefined {
  return options?.rule === "MustRunAs" ? options.ranges?.[0]?.min : undefined;
}

function requiredLabels({ spec: { seLinux } }: Policy): PodSecurityContext["seLinuxOptions"] {
  return seLinux.rule === "MustRunAs" ? seLinux.seLinuxOptions : undefined;
}

/** Adds default capabilities that are not dropped, and drops the required ones; unchanged when there is nothing to change. */
function capabilitiesOf({ spec }: Policy, { securityContext }: AnyContainer): Capabilities | undefined {
  const own = securityContext?.capabilities;
  const dropped = new Set(own?.drop);
  const add = new Set([...(spec.defaultAddCapabilities ?? []).filter((name) => !dropped.has(name)), ...(own?.add ?? [])]);
  const drop = new Set([...(spec.requiredDropCapabilities ?? []), ...dropped]);
  if (add.size === new Set(own?.add).size && drop.size === dropped.size) return own;
  return {
    ...(add.size > 0 ? { add: [...add].sort() } : {}),
    ...(drop.size > 0 ? { drop: [...drop].sort() } : {}),
  };
}

function withoutUndefined<T extends object>(fields: { [Name in keyof T]?: T[Name] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T; // cast: only members with the value undefined are left out
}

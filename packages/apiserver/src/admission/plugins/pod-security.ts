/**
 * Holds pods to the Pod Security Standard that their namespace's labels name: refuses pods, and warns about pods and
 * about what makes them. Without labels everything is allowed.
 * Source: k8s.io/pod-security-admission admission/admission.go
 */
import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalid } from "@coxswain/apimachinery/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject, ObjectMeta } from "@coxswain/apimachinery/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/schema/kinds/resources";
import type { PluginContext } from "../catalogue.ts";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import { violations } from "../pod-security/checks.ts";
import { type LevelVersion, minorOf, type Policy, policyOf, readPodSecurityConfiguration } from "../pod-security/policy.ts";
import { namespaceLookup } from "./namespace-lookup.ts";

interface PodLike {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
}

/** Where a workload keeps its pod template; they are warned about, not refused. */
const templatePaths: Readonly<Record<string, readonly string[]>> = {
  "replicationcontrollers.": ["spec", "template"],
  "podtemplates.": ["template"],
  "replicasets.apps": ["spec", "template"],
  "deployments.apps": ["spec", "template"],
  "statefulsets.apps": ["spec", "template"],
  "daemonsets.apps": ["spec", "template"],
  "jobs.batch": ["spec", "template"],
  "cronjobs.batch": ["spec", "jobTemplate", "spec", "template"],
};
const podsShownInWarning = 1000;

export function podSecurity(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespaceLookup(ctx.informers, ctx.client);
  const podInformer = ctx.informers.for<KubeObject & PodLike>(pods);
  const { defaults, exemptions } = readPodSecurityConfiguration(ctx.configurationOf("PodSecurity"));
  const policyFor = async (namespace: string): Promise<Policy> =>
    policyOf((await lookup.get(namespace))?.metadata.labels ?? {}, [], defaults);
  const isExempt = ({ namespace, user }: AdmissionAttributes, spec: PodSpec | undefined): boolean =>
    exemptions.namespaces.has(namespace) ||
    exemptions.usernames.has(user.name) ||
    (spec?.runtimeClassName !== undefined && exemptions.runtimeClasses.has(spec.runtimeClassName));

  return {
    name: "PodSecurity",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    ready: () => lookup.synced && podInformer.synced,
    async validate(attributes) {
      const { resource, subresource, namespace, operation } = attributes;
      const name = `${resource.resource}.${resource.group}`;
      if (name === "namespaces." && subresource === "")
        return validateNamespace(
          attributes,
          exemptions.namespaces.has(attributes.name)
            ? []
            : podInformer.lister
                .inNamespace(attributes.name)
                .filter(({ spec }) => !exemptions.runtimeClasses.has(spec.runtimeClassName ?? "")),
          defaults,
        );
      if (name === "pods.") {
        if (subresource !== "" && subresource !== "ephemeralcontainers") return;
        if (isExempt(attributes, (attributes.object as KubeObject & PodLike).spec)) return;
        if (operation === "UPDATE" && subresource === "" && !isSignificant(attributes)) return;
        return judgePod(attributes, await policyFor(namespace));
      }
      const path = Object.hasOwn(templatePaths, name) ? templatePaths[name] : undefined;
      if (path === undefined || subresource !== "") return;
      const template = path.reduce<unknown>(
        (value, key) => (value as Record<string, unknown> | undefined)?.[key],
        attributes.object,
      );
      if (template === undefined || isExempt(attributes, (template as Partial<PodLike>).spec)) return;
      warn(attributes, (await policyFor(namespace)).warn, template as Partial<PodLike>);
    },
  };
}

/** A standard may have become stricter since a pod was made: only what changes is judged anew. */
function isSignificant({ object, oldObject }: AdmissionAttributes): boolean {
  const [next, before] = [object as KubeObject & PodLike, oldObject as KubeObject & PodLike];
  if (before.metadata.deletionTimestamp) return false;
  const annotationsOf = (metadata: ObjectMeta): object =>
    Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => /apparmor|seccomp/.test(key)));
  if (!semanticEqual(annotationsOf(next.metadata), annotationsOf(before.metadata))) return true;
  // Images and tolerations may change and say nothing about security.
  const bare = ({ tolerations: _t, activeDeadlineSeconds: _a, ...spec }: PodSpec): object => ({
    ...spec,
    containers: spec.containers.map(({ image: _i, ...rest }) => rest),
    initContainers: (spec.initContainers ?? []).map(({ image: _i, ...rest }) => rest),
  });
  return !semanticEqual(bare(next.spec), bare(before.spec));
}

function judgePod(attributes: AdmissionAttributes, policy: Policy): void {
  const pod = attributes.object as KubeObject & PodLike;
  const found = describe(policy.enforce, pod);
  if (found !== "") throw refuse(attributes, `violates PodSecurity ${found}`);
  warn(attributes, policy.warn, pod);
}

function warn(attributes: AdmissionAttributes, wanted: LevelVersion, pod: Partial<PodLike>): void {
  const found = describe(wanted, pod);
  if (found !== "") attributes.warn(`would violate PodSecurity ${found}`);
}

/** `"restricted:latest": reason (detail), …`; `""` when nothing is wrong. */
function describe({ level, version }: LevelVersion, pod: Partial<PodLike>): string {
  const found = violations(level, minorOf(version), pod.metadata ?? {}, pod.spec ?? { containers: [] });
  if (found.length === 0) return "";
  return `${JSON.stringify(`${level}:${version}`)}: ${found.map(({ reason, detail }) => `${reason} (${detail})`).join(", ")}`;
}

/** Labels must be readable; a stricter standard warns about the pods that are there already. */
function validateNamespace(attributes: AdmissionAttributes, existing: readonly PodLike[], defaults: Policy): void {
  const errors: FieldError[] = [];
  const namespace = attributes.object as KubeObject;
  const policy = policyOf(namespace.metadata.labels ?? {}, errors, defaults);
  const before =
    attributes.oldObject === undefined ? undefined : policyOf(attributes.oldObject.metadata.labels ?? {}, [], defaults);
  if (errors.length > 0) {
    const oldErrors: FieldError[] = [];
    if (attributes.oldObject !== undefined) policyOf(attributes.oldObject.metadata.labels ?? {}, oldErrors);
    // What was wrong before does not stop other changes.
    if (!semanticEqual(errors, oldErrors)) throw invalid({ group: "", kind: "Namespace" }, attributes.name, errors);
  }
  if (before === undefined || semanticEqual(before.enforce, policy.enforce)) return;
  const byText = new Map<string, string[]>();
  for (const pod of existing.slice(0, podsShownInWarning)) {
    const { enforce } = policy;
    const reasons = violations(enforce.level, minorOf(enforce.version), pod.metadata, pod.spec).map(({ reason }) => reason);
    if (reasons.length === 0) continue;
    const text = reasons.join(", ");
    byText.set(text, [...(byText.get(text) ?? []), pod.metadata.name ?? ""]);
  }
  if (byText.size === 0) return;
  const { level, version } = policy.enforce;
  attributes.warn(
    `existing pods in namespace ${JSON.stringify(attributes.name)} violate the new PodSecurity enforce level ${JSON.stringify(`${level}:${version}`)}`,
  );
  for (const [text, names] of byText) {
    const [first, ...others] = names.sort();
    const more = others.length === 0 ? "" : ` (and ${others.length} other pod${others.length === 1 ? "" : "s"})`;
    attributes.warn(`${first}${more}: ${text}`);
  }
}

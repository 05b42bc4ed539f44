/**
 * Enforces the Pod Security Standards selected by namespace labels: rejects pods, warns about pods and workloads, and adds
 * audit annotations. Namespaces without labels use the configured defaults.
 * Source: k8s.io/pod-security-admission admission/admission.go
 */
import { type FieldError, formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { internalError, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject, ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { violations } from "../pod-security/checks.ts";
import { warningsAbout } from "../pod-security/existing-pods.ts";
import { newPodSecurityMetrics } from "../pod-security/metrics.ts";
import {
  type LevelVersion,
  levels,
  minorOf,
  type Policy,
  policyOf,
  prefix,
  readPodSecurityConfiguration,
} from "../pod-security/policy.ts";
import { isSignificant } from "../pod-security/significant.ts";
import { namespaceLookup } from "./namespace-lookup.ts";
import { isOn, type PodObject } from "./pod-of.ts";

interface PodLike {
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
}

/** Path of the pod template by resource; workloads are warned about and audited, never rejected. */
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
/** Subresources irrelevant to the standards; unknown subresources are evaluated. */
const ignoredSubresources = new Set(["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"]);

export const podSecurity = (ctx: PluginContext): AdmissionPlugin => new PodSecurity(ctx);

class PodSecurity implements AdmissionPlugin {
  readonly name = "PodSecurity";
  readonly resources = ["pods", "namespaces", ...Object.keys(templatePaths).map((name) => name.replace(/\.$/, ""))];
  readonly #ctx: PluginContext;
  readonly #lookup: ReturnType<typeof namespaceLookup>;
  readonly #metrics: ReturnType<typeof newPodSecurityMetrics>;
  readonly #isEnabled: boolean;
  readonly #configuration: ReturnType<typeof readPodSecurityConfiguration>;

  constructor(ctx: PluginContext) {
    this.#ctx = ctx;
    this.#lookup = namespaceLookup(ctx.informers, ctx.client);
    this.#metrics = newPodSecurityMetrics(ctx.metrics);
    this.#isEnabled = ctx.featureEnabled("PodSecurity");
    this.#configuration = readPodSecurityConfiguration(ctx.configurationOf("PodSecurity"));
  }

  #exempted(attributes: AdmissionAttributes, why: string): void {
    attributes.annotate(`${prefix}exempt`, why);
    this.#metrics.exempted(attributes);
  }

  #isExempt({ spec: { runtimeClassName = "" } }: PodLike): boolean {
    return this.#configuration.exemptions.runtimeClasses.has(runtimeClassName);
  }

  async #judge(attributes: AdmissionAttributes, pod: PodLike, enforces: boolean): Promise<void> {
    const { namespace, user } = attributes;
    if (this.#configuration.exemptions.namespaces.has(namespace)) return this.#exempted(attributes, "namespace");
    if (this.#configuration.exemptions.usernames.has(user.name)) return this.#exempted(attributes, "user");
    const labels = await this.#labelsOf(attributes, enforces);
    if (labels === undefined) return;
    const errors: FieldError[] = [];
    const policy = policyOf(labels, errors, this.#configuration.defaults);
    if (errors.length === 0 && isPrivileged(policy, enforces)) {
      if (!enforces) return;
      attributes.annotate(`${prefix}enforce-policy`, "privileged:latest");
      return this.#metrics.evaluated("allow", policy.enforce, "enforce", attributes);
    }
    const before = enforces && isOn<PodObject>(attributes, "pods") ? attributes.oldObject : undefined;
    if (before !== undefined && !isSignificant(pod, before)) return;
    if (this.#isExempt(pod)) return this.#exempted(attributes, "runtimeClass");
    if (errors.length > 0) {
      attributes.annotate(`${prefix}error`, `Failed to parse policy: ${formatFieldErrors(errors)}`);
      this.#metrics.failed(false, attributes);
    }
    this.#evaluate(attributes, policy, pod, enforces);
  }

  async #labelsOf(attributes: AdmissionAttributes, enforces: boolean): Promise<Record<string, string> | undefined> {
    const { namespace } = attributes;
    const found = await this.#lookup.get(namespace).catch(() => undefined);
    if (found !== undefined) return found.metadata.labels ?? {};
    this.#metrics.failed(true, attributes);
    if (enforces) throw internalError(new Error(`failed to lookup namespace ${namespace}`));
    attributes.annotate(`${prefix}error`, `failed to lookup namespace ${namespace}`);
    return undefined;
  }

  #evaluate(attributes: AdmissionAttributes, policy: Policy, pod: PodLike, enforces: boolean): void {
    const found = new Map<string, string>();
    const describe = (wanted: LevelVersion): string => {
      const key = `${wanted.level}:${wanted.version}`;
      const text = found.get(key) ?? description(wanted, pod);
      found.set(key, text);
      return text;
    };
    let refusal = "";
    if (enforces) {
      attributes.annotate(`${prefix}enforce-policy`, `${policy.enforce.level}:${policy.enforce.version}`);
      refusal = describe(policy.enforce);
      this.#metrics.evaluated(refusal === "" ? "allow" : "deny", policy.enforce, "enforce", attributes);
    }
    const audited = describe(policy.audit);
    if (audited !== "") {
      attributes.annotate(`${prefix}audit-violations`, `would violate PodSecurity ${audited}`);
      this.#metrics.evaluated("deny", policy.audit, "audit", attributes);
    }
    if (refusal !== "") throw refuse(attributes, `violates PodSecurity ${refusal}`);
    const warning = describe(policy.warn);
    if (warning === "") return;
    attributes.warn(`would violate PodSecurity ${warning}`);
    this.#metrics.evaluated("deny", policy.warn, "warn", attributes);
  }

  async #validateNamespace(attributes: AdmissionAttributes): Promise<void> {
    const { name, oldObject } = attributes;
    const errors: FieldError[] = [];
    const policy = policyOf(attributes.object?.metadata.labels ?? {}, errors, this.#configuration.defaults);
    const oldErrors: FieldError[] = [];
    const before =
      oldObject === undefined ? undefined : policyOf(oldObject.metadata.labels ?? {}, oldErrors, this.#configuration.defaults);
    // Labels that were invalid before must not block unrelated updates.
    if (errors.length > 0 && !semanticEqual(errors, oldErrors)) throw invalid({ group: "", kind: "Namespace" }, name, errors);
    if (before === undefined || !isStricter(policy.enforce, before.enforce)) return;
    if (this.#configuration.exemptions.namespaces.has(name)) {
      attributes.annotate(`${prefix}exempt`, "namespace");
      return;
    }
    // Listed from the watch cache on demand: an informer would keep every pod decoded in memory for a rare check.
    const { items } = await this.#ctx.client.list<KubeObject & PodLike>(pods, { namespace: name }, { resourceVersion: "0" });
    const existing = items.filter((pod) => !this.#isExempt(pod));
    const warnings = await warningsAbout(name, existing, policy.enforce, () => this.#ctx.clock.monotonic(), this.#ctx.turns);
    for (const warning of warnings) attributes.warn(warning);
  }

  handles(operation: AdmissionAttributes["operation"]): boolean {
    return this.#isEnabled && (operation === "CREATE" || operation === "UPDATE");
  }

  ready(): boolean {
    return this.#lookup.synced;
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    const { resource, subresource, object } = attributes;
    const name = `${resource.resource}.${resource.group}`;
    if (name === "namespaces.") {
      if (subresource === "") await this.#validateNamespace(attributes);
      return;
    }
    if (isOn<PodObject>(attributes, "pods")) {
      return ignoredSubresources.has(subresource) ? undefined : this.#judge(attributes, attributes.object!, true);
    }
    const path = Object.hasOwn(templatePaths, name) ? templatePaths[name] : undefined;
    if (path === undefined || subresource !== "") return;
    const template = path.reduce<unknown>((value, key) => (isJsonObject(value) ? value[key] : undefined), object);
    const { metadata = {}, spec = { containers: [] } }: Partial<PodLike> = template ?? {};
    if (template !== undefined) await this.#judge(attributes, { metadata, spec }, false);
  }
}

/** True when no check is needed. Workload templates are never rejected, so their `enforce` level does not count. */
function isPrivileged({ enforce, audit, warn }: Policy, enforces: boolean): boolean {
  return audit.level === "privileged" && warn.level === "privileged" && (!enforces || enforce.level === "privileged");
}

/** True when `next` could reject a pod that `before` accepts. */
function isStricter(next: LevelVersion, before: LevelVersion): boolean {
  if (next.level === "privileged") return false;
  return next.version !== before.version || levels.indexOf(next.level) > levels.indexOf(before.level);
}

/** `"restricted:latest": reason (detail), …`; `""` without violations. */
function description({ level, version }: LevelVersion, { metadata, spec }: PodLike): string {
  const found = violations(level, minorOf(version), metadata, spec);
  if (found.length === 0) return "";
  return `${goQuote(`${level}:${version}`)}: ${found.map(({ reason, detail }) => `${reason} (${detail})`).join(", ")}`;
}

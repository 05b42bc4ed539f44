import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  index,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStrings } from "@coxswain/apimachinery/objects/errors/go-syntax";
import type {
  MutatingWebhookConfiguration,
  RuleWithOperations,
  ValidatingWebhookConfiguration,
  WebhookClientConfig,
} from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { checkLabelSelector, dns1035LabelProblems, dns1123SubdomainProblems } from "../field-checks.ts";
import { each, eachInSteps, eachWithSteps, need, optionalOneOf, saying } from "../rules.ts";
import { validateWebhookUrl } from "./webhook-url.ts";

/**
 * Errors that the stored configuration already has are tolerated on update.
 * Source: pkg/apis/admissionregistration/validation/validation.go
 */
export function validateMutatingWebhookConfiguration(
  { webhooks }: MutatingWebhookConfiguration,
  current?: MutatingWebhookConfiguration,
): Steps<FieldError[]> {
  return validateWebhooks(webhooks, leniencyOf(current), (webhook, path) =>
    optionalOneOf(webhook.reinvocationPolicy, ["IfNeeded", "Never"], child(path, "reinvocationPolicy")),
  );
}

/** As `validateMutatingWebhookConfiguration`; validating webhooks have no reinvocationPolicy. */
export function validateValidatingWebhookConfiguration(
  { webhooks }: ValidatingWebhookConfiguration,
  current?: ValidatingWebhookConfiguration,
): Steps<FieldError[]> {
  return validateWebhooks(webhooks, leniencyOf(current), () => []);
}

type Webhook = NonNullable<ValidatingWebhookConfiguration["webhooks"]>[number];

interface Options {
  readonly sideEffects: readonly string[];
  readonly knownReviewVersion: boolean;
  readonly uniqueNames: boolean;
}

const noSideEffects = ["None", "NoneOnDryRun"];
const anySideEffects = [...noSideEffects, "Some", "Unknown"];
export const reviewVersions: readonly string[] = ["v1", "v1beta1"];

function leniencyOf(current: { readonly webhooks?: readonly Webhook[] } | undefined): Options {
  const webhooks = current?.webhooks ?? [];
  const harmless = webhooks.every(({ sideEffects }) => noSideEffects.includes(sideEffects ?? ""));
  return {
    sideEffects: harmless ? noSideEffects : anySideEffects,
    knownReviewVersion: webhooks.every((webhook) =>
      (webhook.admissionReviewVersions ?? []).some((version) => reviewVersions.includes(version)),
    ),
    uniqueNames: new Set(webhooks.map((webhook) => webhook.name)).size === webhooks.length,
  };
}

function validateWebhooks<T extends Webhook>(
  webhooks: readonly T[] | undefined,
  options: Options,
  ownRules: (webhook: T, path: string) => FieldError[],
): Steps<FieldError[]> {
  const names = new Set<string>();
  return eachWithSteps(webhooks, "webhooks", function* (webhook, path) {
    const errors = yield* validateWebhook(webhook, path, options, ownRules);
    const versions = webhook.admissionReviewVersions ?? [];
    const at = child(path, "admissionReviewVersions");
    addErrors(errors, yield* validateReviewVersions(versions, at, options.knownReviewVersion));
    const name = webhook.name ?? "";
    if (options.uniqueNames && name !== "" && names.has(name)) errors.push(duplicate(child(path, "name"), name));
    names.add(name);
    return errors;
  });
}

function* validateWebhook<T extends Webhook>(
  webhook: T,
  path: string,
  options: Options,
  ownRules: (webhook: T, path: string) => FieldError[],
): Steps<FieldError[]> {
  const { sideEffects, timeoutSeconds } = webhook;
  const timeout = "the timeout value must be between 1 and 30 seconds";
  return [
    ...checkQualifiedName(webhook.name ?? "", child(path, "name")),
    ...(yield* eachInSteps(webhook.rules, child(path, "rules"), validateRule)),
    ...optionalOneOf(webhook.failurePolicy, ["Fail", "Ignore"], child(path, "failurePolicy")),
    ...optionalOneOf(webhook.matchPolicy, ["Equivalent", "Exact"], child(path, "matchPolicy")),
    ...(sideEffects === undefined
      ? [required(child(path, "sideEffects"), `must specify one of ${options.sideEffects.join(", ")}`)]
      : optionalOneOf(sideEffects, options.sideEffects, child(path, "sideEffects"))),
    ...(timeoutSeconds !== undefined && (timeoutSeconds > 30 || timeoutSeconds < 1)
      ? [invalidValue(child(path, "timeoutSeconds"), timeoutSeconds, timeout)]
      : []),
    ...checkLabelSelector(webhook.namespaceSelector, child(path, "namespaceSelector")),
    ...checkLabelSelector(webhook.objectSelector, child(path, "objectSelector")),
    ...ownRules(webhook, path),
    ...validateWebhookClient(webhook.clientConfig, child(path, "clientConfig")),
  ];
}

/**
 * @param known true: at least one version must be supported by this server
 * Source: pkg/apis/admissionregistration/validation validateAdmissionReviewVersions
 */
export function* validateReviewVersions(versions: readonly string[], path: string, known: boolean): Steps<FieldError[]> {
  const spoken = reviewVersions.join(", ");
  if (versions.length === 0) return [required(path, `must specify one of ${spoken}`)];
  const seen = new Set<string>();
  const errors = yield* eachInSteps(versions, path, (version, at) => {
    if (seen.has(version)) return [invalidValue(at, version, "duplicate version")];
    seen.add(version);
    return saying(dns1035LabelProblems(version), version, at);
  });
  if (known && !versions.some((version) => reviewVersions.includes(version)))
    errors.push(invalidValue(path, versions, `must include at least one of ${spoken}`));
  return errors;
}

/** Source: k8s.io/apimachinery pkg/util/validation IsFullyQualifiedName */
function checkQualifiedName(name: string, path: string): FieldError[] {
  if (name === "") return [required(path)];
  const faults = dns1123SubdomainProblems(name);
  if (faults.length > 0) return [invalidValue(path, name, faults.join(","))];
  if (name.split(".").length >= 3) return [];
  return [invalidValue(path, name, "should be a domain with at least three segments separated by dots")];
}

/** Shared with CRD conversion webhooks. Source: k8s.io/apiserver pkg/util/webhook/validation.go */
export function validateWebhookClient(client: WebhookClientConfig | undefined, path: string): FieldError[] {
  if (!client || (client.url === undefined) === (client.service === undefined)) {
    return [required(path, "exactly one of url or service is required")];
  }
  if (client.url !== undefined) return validateWebhookUrl(client.url, child(path, "url"));
  const service = client.service;
  const errors: FieldError[] = [];
  const at = child(path, "service");
  // Upstream swaps the two paths.
  if (!service?.namespace) errors.push(required(child(at, "name"), "service name is required"));
  if (!service?.name) errors.push(required(child(at, "namespace"), "service namespace is required"));
  const port = service?.port ?? 443;
  if (port < 1 || port > 65535) {
    errors.push(invalidValue(child(at, "port"), port, "port is not valid: must be between 1 and 65535, inclusive"));
  }
  const servicePath = service?.path;
  if (servicePath) errors.push(...validateServicePath(servicePath, child(at, "path")));
  return errors;
}

function validateServicePath(servicePath: string, path: string): FieldError[] {
  if (servicePath === "/") return [];
  if (servicePath === "//") return [invalidValue(path, servicePath, "segment[0] may not be empty")];
  const errors = servicePath.startsWith("/") ? [] : [invalidValue(path, servicePath, "must start with a '/'")];
  // Upstream drops the first character, even if it is not a slash, and one trailing slash.
  const steps = servicePath.slice(1).replace(/\/$/, "").split("/");
  for (const [i, step] of steps.entries()) {
    if (step === "") errors.push(invalidValue(path, servicePath, `segment[${i}] may not be empty`));
    else
      for (const message of dns1123SubdomainProblems(step))
        errors.push(invalidValue(path, servicePath, `segment[${i}]: ${message}`));
  }
  return errors;
}

const knownOperations = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

function validateRule(rule: RuleWithOperations, path: string): FieldError[] {
  const operations: readonly string[] = rule.operations ?? [];
  const at = child(path, "operations");
  const hasOthers = operations.length > 1 && operations.includes("*");
  return [
    ...need(operations, at),
    ...(hasOthers
      ? [
          invalidValue(
            at,
            goStrings("admissionregistration.OperationType", operations),
            "if '*' is present, must not specify other operations",
          ),
        ]
      : []),
    ...each(operations, at, (operation, own) => optionalOneOf(operation, knownOperations, own)),
    ...wildcardAlone(rule.apiGroups, path, "apiGroups"),
    ...wildcardAlone(rule.apiVersions, path, "apiVersions"),
    ...each(rule.apiVersions, child(path, "apiVersions"), (version, own) => need(version, own)),
    ...validateResources(rule.resources ?? [], child(path, "resources")),
    ...optionalOneOf(rule.scope, ["*", "Cluster", "Namespaced"], child(path, "scope")),
  ];
}

function wildcardAlone(list: readonly string[] | undefined, path: string, field: "apiGroups" | "apiVersions"): FieldError[] {
  if (!list?.length) return [required(child(path, field))];
  if (list.length > 1 && list.includes("*")) {
    const what = field === "apiGroups" ? "API groups" : "API versions";
    return [invalidValue(child(path, field), list, `if '*' is present, must not specify other ${what}`)];
  }
  return [];
}

function validateResources(resources: readonly string[], path: string): FieldError[] {
  if (resources.length === 0) return [required(path)];
  const errors: FieldError[] = [];
  const wildcardSubresources = new Set<string>();
  const wildcardResources = new Set<string>();
  for (const [i, resource] of resources.entries()) {
    const at = index(path, i);
    if (resource === "") {
      errors.push(required(at));
      continue;
    }
    if (resource === "*/*") continue;
    const slash = resource.indexOf("/");
    const base = slash < 0 ? resource : resource.slice(0, slash);
    const sub = slash < 0 ? "" : resource.slice(slash + 1);
    if (slash >= 0 && wildcardSubresources.has(base)) {
      errors.push(invalidValue(at, resource, `if '${base}/*' is present, must not specify ${resource}`));
    }
    if (slash >= 0 && wildcardResources.has(sub)) {
      errors.push(invalidValue(at, resource, `if '*/${sub}' is present, must not specify ${resource}`));
    }
    if (sub === "*") wildcardSubresources.add(base);
    if (base === "*" && sub !== "") wildcardResources.add(sub);
  }
  if (resources.length > 1 && resources.includes("*/*")) {
    errors.push(invalidValue(path, resources, "if '*/*' is present, must not specify other resources"));
  }
  const wild = resources.includes("*");
  if (wild && resources.some((resource) => resource !== "*" && !resource.includes("/"))) {
    errors.push(invalidValue(path, resources, "if '*' is present, must not specify other resources without subresources"));
  }
  return errors;
}

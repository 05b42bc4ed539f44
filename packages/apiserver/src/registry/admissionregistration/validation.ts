import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type {
  MutatingWebhookConfiguration,
  RuleWithOperations,
  ValidatingWebhookConfiguration,
  WebhookClientConfig,
} from "@coxswain/apimachinery/schema/kinds/admissionregistration/v1";
import { checkLabelSelector, isDns1123Label, isDns1123Subdomain } from "../field-checks.ts";

/** Source: pkg/apis/admissionregistration/validation/validation.go */
export function validateMutatingWebhookConfiguration(configuration: MutatingWebhookConfiguration): FieldError[] {
  const errors = validateWebhooks(configuration.webhooks ?? []);
  for (const [i, webhook] of (configuration.webhooks ?? []).entries()) {
    const policy = webhook.reinvocationPolicy;
    if (policy !== undefined && policy !== "Never" && policy !== "IfNeeded") {
      errors.push(notSupported(child(index("webhooks", i), "reinvocationPolicy"), policy, ["IfNeeded", "Never"]));
    }
  }
  return errors;
}

export function validateValidatingWebhookConfiguration(configuration: ValidatingWebhookConfiguration): FieldError[] {
  return validateWebhooks(configuration.webhooks ?? []);
}

type Webhook = NonNullable<ValidatingWebhookConfiguration["webhooks"]>[number];

function validateWebhooks(webhooks: readonly Webhook[]): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [i, webhook] of webhooks.entries()) {
    const path = index("webhooks", i);
    errors.push(...validateWebhook(webhook, path));
    const name = webhook.name ?? "";
    if (name !== "" && names.has(name)) errors.push(duplicate(child(path, "name"), name));
    names.add(name);
  }
  return errors;
}

function validateWebhook(webhook: Webhook, path: string): FieldError[] {
  const errors: FieldError[] = [];
  errors.push(...checkQualifiedWebhookName(webhook.name ?? "", child(path, "name")));
  if (!webhook.admissionReviewVersions?.length) {
    errors.push(required(child(path, "admissionReviewVersions"), "must specify one of v1, v1beta1"));
  } else {
    const seen = new Set<string>();
    let known = false;
    for (const [i, version] of webhook.admissionReviewVersions.entries()) {
      const at = index(child(path, "admissionReviewVersions"), i);
      if (seen.has(version)) errors.push(invalidValue(at, version, "duplicate version"));
      seen.add(version);
      if (version === "v1" || version === "v1beta1") known = true;
      for (const message of isDns1123Label(version)) errors.push(invalidValue(at, version, message));
    }
    if (!known) {
      errors.push(
        invalidValue(
          child(path, "admissionReviewVersions"),
          webhook.admissionReviewVersions,
          "must include at least one of v1, v1beta1",
        ),
      );
    }
  }
  for (const [i, rule] of (webhook.rules ?? []).entries()) errors.push(...validateRule(rule, index(child(path, "rules"), i)));
  if (webhook.failurePolicy !== undefined && !["Ignore", "Fail"].includes(webhook.failurePolicy)) {
    errors.push(notSupported(child(path, "failurePolicy"), webhook.failurePolicy, ["Fail", "Ignore"]));
  }
  if (webhook.matchPolicy !== undefined && !["Exact", "Equivalent"].includes(webhook.matchPolicy)) {
    errors.push(notSupported(child(path, "matchPolicy"), webhook.matchPolicy, ["Equivalent", "Exact"]));
  }
  const sideEffects = webhook.sideEffects as string | undefined;
  if (!sideEffects) errors.push(required(child(path, "sideEffects"), "must specify one of None, NoneOnDryRun"));
  else if (sideEffects !== "None" && sideEffects !== "NoneOnDryRun") {
    errors.push(notSupported(child(path, "sideEffects"), sideEffects, ["None", "NoneOnDryRun"]));
  }
  const timeout = webhook.timeoutSeconds;
  if (timeout !== undefined && (timeout > 30 || timeout < 1)) {
    errors.push(invalidValue(child(path, "timeoutSeconds"), timeout, "the timeout value must be between 1 and 30 seconds"));
  }
  if (webhook.namespaceSelector) errors.push(...checkLabelSelector(webhook.namespaceSelector, child(path, "namespaceSelector")));
  if (webhook.objectSelector) errors.push(...checkLabelSelector(webhook.objectSelector, child(path, "objectSelector")));
  errors.push(...validateWebhookClient(webhook.clientConfig, child(path, "clientConfig")));
  return errors;
}

function checkQualifiedWebhookName(name: string, path: string): FieldError[] {
  if (name === "") return [required(path)];
  const errors = isDns1123Subdomain(name).map((message) => invalidValue(path, name, message));
  if (errors.length === 0 && name.split(".").length < 3) {
    errors.push(invalidValue(path, name, "should be a domain with at least three segments separated by dots"));
  }
  return errors;
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
  if (!service?.name) errors.push(required(child(at, "name"), "service name is required"));
  if (!service?.namespace) errors.push(required(child(at, "namespace"), "service namespace is required"));
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
  if (!servicePath.startsWith("/")) return [invalidValue(path, servicePath, "must start with a '/'")];
  const errors: FieldError[] = [];
  const steps = servicePath.slice(1).split("/");
  for (const [i, step] of steps.entries()) {
    if (step === "") {
      if (i === steps.length - 1) continue; // one trailing slash
      errors.push(invalidValue(path, servicePath, `segment[${i}] may not be empty`));
      continue;
    }
    for (const message of isDns1123Subdomain(step)) errors.push(invalidValue(path, servicePath, `segment[${i}]: ${message}`));
  }
  return errors;
}

function validateWebhookUrl(url: string, path: string): FieldError[] {
  const form = `; desired format: https://host[/path]`;
  if (!URL.canParse(url)) return [required(path, `url must be a valid URL: parse ${JSON.stringify(url)}${form}`)];
  const parsed = new URL(url);
  const errors: FieldError[] = [];
  if (parsed.protocol !== "https:") {
    errors.push(invalidValue(path, parsed.protocol.slice(0, -1), `'https' is the only allowed URL scheme${form}`));
  }
  if (parsed.hostname === "") errors.push(invalidValue(path, "", `host must be specified${form}`));
  if (parsed.username !== "" || parsed.password !== "") {
    errors.push(invalidValue(path, parsed.username, "user information is not permitted in the URL"));
  }
  if (parsed.hash !== "") errors.push(invalidValue(path, parsed.hash.slice(1), "fragments are not permitted in the URL"));
  if (parsed.search !== "")
    errors.push(invalidValue(path, parsed.search.slice(1), "query parameters are not permitted in the URL"));
  return errors;
}

function validateRule(rule: RuleWithOperations, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const operations: readonly string[] = rule.operations ?? [];
  errors.push(...wildcardAlone(rule.apiGroups, path, "apiGroups"));
  errors.push(...wildcardAlone(rule.apiVersions, path, "apiVersions"));
  for (const [i, version] of (rule.apiVersions ?? []).entries()) {
    if (version === "") errors.push(required(index(child(path, "apiVersions"), i)));
  }
  errors.push(...validateResources(rule.resources ?? [], child(path, "resources")));
  const scope = rule.scope as string | undefined;
  if (scope !== undefined && !["Cluster", "Namespaced", "*"].includes(scope)) {
    errors.push(notSupported(child(path, "scope"), scope, ["*", "Cluster", "Namespaced"]));
  }
  if (operations.length === 0) errors.push(required(child(path, "operations")));
  if (operations.length > 1 && operations.includes("*")) {
    errors.push(invalidValue(child(path, "operations"), operations, "if '*' is present, must not specify other operations"));
  }
  for (const [i, operation] of operations.entries()) {
    if (!["*", "CREATE", "UPDATE", "DELETE", "CONNECT"].includes(operation)) {
      errors.push(notSupported(index(child(path, "operations"), i), operation, ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]));
    }
  }
  return errors;
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

import { child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { APIService, APIServiceCondition } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import { pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import { dns1035LabelProblems, dns1123SubdomainProblems } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { each, optionalOneOf } from "../../rules.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";

/** Source: kube-aggregator pkg/registry/apiservice/strategy.go */
export const apiServiceStrategy: Strategy<APIService> = strategyOf<APIService>({
  namespaced: false,
  status: true,
  anyFinalizer: true,
  allowUnconditionalUpdate: false,
  validateName: pathSegmentFaults, // `v1.` names the core group
  prepareForCreate(next, ctx) {
    // Without a service reference the group is served by this server and is always available.
    next.status = next.spec?.service ? {} : { conditions: [localCondition(ctx.now())] };
  },
  validate: (next) => validateApiService(next),
});

function localCondition(nowMs: number): APIServiceCondition {
  return {
    type: "Available",
    status: "True",
    lastTransitionTime: formatTime(nowMs),
    reason: "Local",
    message: "Local APIServices are always available",
  };
}

export const apiServiceStatusStrategy: Strategy<APIService> = statusStrategyOf({
  namespaced: false,
  anyFinalizer: true,
  keepMetadata: true,
  validateUpdate: (next) =>
    each(next.status?.conditions, "status.conditions", ({ status }, path) =>
      optionalOneOf(status ?? "", ["True", "False", "Unknown"], child(path, "status")),
    ),
});

function validateApiService(service: APIService): FieldError[] {
  const errors: FieldError[] = [];
  const { spec } = service;
  const required_ = `${spec?.version ?? ""}.${spec?.group ?? ""}`;
  // Missing and malformed names are reported by the metadata validation.
  if (service.metadata.name && service.metadata.name !== required_ && pathSegmentFaults(service.metadata.name).length === 0) {
    errors.push(
      invalidValue("metadata.name", service.metadata.name ?? "", `must be \`spec.version+"."+spec.group\`: "${required_}"`),
    );
  }
  if (!spec) return [...errors, required("spec.version")];
  if (spec.group) {
    for (const message of dns1123SubdomainProblems(spec.group)) errors.push(invalidValue("spec.group", spec.group, message));
  } else if (spec.version !== "v1") {
    errors.push(required("spec.group", "only v1 may have an empty group and it better be legacy kube"));
  }
  for (const message of dns1035LabelProblems(spec.version ?? ""))
    errors.push(invalidValue("spec.version", spec.version ?? "", message));
  const groupPriority = spec.groupPriorityMinimum ?? 0;
  if (groupPriority <= 0 || groupPriority > 20000) {
    errors.push(invalidValue("spec.groupPriorityMinimum", groupPriority, "must be positive and less than 20000"));
  }
  const versionPriority = spec.versionPriority ?? 0;
  if (versionPriority <= 0 || versionPriority > 1000) {
    errors.push(invalidValue("spec.versionPriority", versionPriority, "must be positive and less than 1000"));
  }
  if (!spec.service) {
    if (spec.caBundle)
      errors.push(
        invalidValue(
          "spec.caBundle",
          `${Buffer.from(spec.caBundle, "base64").length} bytes`,
          "local APIServices may not have a caBundle",
        ),
      );
    if (spec.insecureSkipTLSVerify) {
      errors.push(invalidValue("spec.insecureSkipTLSVerify", true, "local APIServices may not have insecureSkipTLSVerify"));
    }
    return errors;
  }
  if (!spec.service.namespace) errors.push(required("spec.service.namespace"));
  if (!spec.service.name) errors.push(required("spec.service.name"));
  const port = spec.service.port ?? 443;
  if (port < 1 || port > 65535) {
    errors.push(invalidValue("spec.service.port", port, "port is not valid: must be between 1 and 65535, inclusive"));
  }
  if (spec.insecureSkipTLSVerify && spec.caBundle) {
    errors.push(invalidValue("spec.insecureSkipTLSVerify", true, "may not be true if caBundle is present"));
  }
  return errors;
}

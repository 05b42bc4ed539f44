import {
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type { IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { dns1123Label, dns1123SubdomainProblems, immutableField } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { saying } from "../../rules.ts";
import { strategyOf } from "../../strategies.ts";
import { validateObjectReference } from "../ingresses/validation.ts";

/** Source: pkg/registry/networking/ingressclass/strategy.go, pkg/apis/networking/validation/validation.go */
export const ingressClassStrategy: Strategy<IngressClass> = {
  ...strategyOf<IngressClass>({ namespaced: false, generation: true }),
  validate: (next) => validateIngressClass(next),
  validateUpdate: (next, current) => [
    ...immutableField(next.spec?.controller ?? "", current.spec?.controller ?? "", "spec.controller"),
    ...validateIngressClass(next),
  ],
};

function validateIngressClass(ingressClass: IngressClass): FieldError[] {
  const errors: FieldError[] = [];
  const controller = ingressClass.spec?.controller ?? "";
  if (Buffer.byteLength(controller) > 250) errors.push(tooLong("spec.controller", controller, 250));
  errors.push(...checkDomainPrefixedPath(controller, "spec.controller"));
  const parameters = ingressClass.spec?.parameters;
  if (!parameters) return errors;
  errors.push(...validateObjectReference(parameters, "spec.parameters"));
  const scope = parameters.scope;
  if (scope === undefined) errors.push(required("spec.parameters.scope"));
  else if (scope !== "Cluster" && scope !== "Namespace")
    errors.push(notSupported("spec.parameters.scope", scope, ["Cluster", "Namespace"]));
  else if (scope === "Namespace") {
    if (!parameters.namespace) errors.push(required("spec.parameters.namespace", "`parameters.scope` is set to 'Namespace'"));
    else errors.push(...dns1123Label(parameters.namespace, "spec.parameters.namespace"));
  } else if (parameters.namespace !== undefined) {
    errors.push(forbiddenField("spec.parameters.namespace", "`parameters.scope` is set to 'Cluster'"));
  }
  return errors;
}

/** `acme.io/foo`. Source: k8s.io/apimachinery pkg/util/validation IsDomainPrefixedPath */
function checkDomainPrefixedPath(value: string, path: string): FieldError[] {
  if (value === "") return [required(path)];
  const slash = value.indexOf("/");
  const [domain, rest] = slash < 0 ? [value, ""] : [value.slice(0, slash), value.slice(slash + 1)];
  if (domain === "" || rest === "") {
    return [invalidValue(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  const errors = saying(dns1123SubdomainProblems(domain), domain, path);
  if (!/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(rest))
    errors.push(invalidValue(path, rest, "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"));
  return errors;
}

import type { CustomResourceDefinition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { emptyStruct } from "../../rules.ts";

/** Source: apiextensions-apiserver pkg/apis/apiextensions/v1/defaults.go */
export function defaultCustomResourceDefinition(crd: CustomResourceDefinition): void {
  const { spec } = crd;
  if (!spec) return;
  if (!crd.status?.storedVersions?.length) {
    crd.status ??= emptyStruct();
    crd.status.storedVersions = (spec.versions ?? []).filter((version) => version.storage).map((version) => version.name);
  }
  spec.names ??= emptyStruct();
  if (!spec.names.singular) spec.names.singular = (spec.names.kind ?? "").toLowerCase();
  if (!spec.names.listKind && spec.names.kind) spec.names.listKind = `${spec.names.kind}List`;
  spec.conversion ??= { strategy: "None" };
  const service = spec.conversion.webhook?.clientConfig?.service;
  if (service) service.port ??= 443;
}

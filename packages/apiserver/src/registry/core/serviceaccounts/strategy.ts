import type { ServiceAccount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";

/** Source: pkg/registry/core/serviceaccount/strategy.go */
export const serviceAccountStrategy: Strategy<ServiceAccount> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  prepareForCreate: withoutSecretFields,
  prepareForUpdate: withoutSecretFields,
};

/** Drops everything but the name from secret references. */
function withoutSecretFields(account: ServiceAccount): void {
  if (!account.secrets) return;
  account.secrets = account.secrets.map((reference) => (reference.name === undefined ? {} : { name: reference.name }));
}

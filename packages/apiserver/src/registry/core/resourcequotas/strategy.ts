import type { ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { keep } from "../../strategies.ts";
import { validateQuota, validateQuotaStatus, validateQuotaUpdate } from "./validation.ts";

/** Source: pkg/registry/core/resourcequota/strategy.go */
export const resourceQuotaStrategy: Strategy<ResourceQuota> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForCreate(next) {
    next.status = {};
  },
  prepareForUpdate: (next, current) => keep(next, current, "status"),
  validateInSteps: (next, current) => (current === undefined ? validateQuota(next) : validateQuotaUpdate(next, current)),
};

export const resourceQuotaStatusStrategy: Strategy<ResourceQuota> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["spec"],
  prepareForUpdate: (next, current) => keep(next, current, "spec"),
  validateUpdate: (next) => validateQuotaStatus(next),
};

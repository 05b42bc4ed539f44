import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { each } from "../../rules.ts";
import { keep } from "../../strategies.ts";
import { validateFinalizer } from "./finalizers.ts";
import { isFinalized } from "./strategy.ts";

/** `/finalize`: changes only spec.finalizers. Source: pkg/registry/core/namespace/strategy.go */
export const namespaceFinalizeStrategy: Strategy<Namespace> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  completesDeletion: isFinalized,
  prepareForUpdate: (next, current) => keep(next, current, "status"),
  validateUpdate: (next) => each(next.spec?.finalizers, "spec.finalizers", validateFinalizer),
};

import type { CustomResourceDefinition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { compileAhead } from "../structural-schema/rules/rules.ts";

interface Write {
  readonly resource: { readonly group: string; readonly resource: string };
  readonly subresource: string;
  readonly object: object | undefined;
}

/**
 * Compiles the rules of a written CustomResourceDefinition after mutating admission and before its strategy, which compiles
 * synchronously and would block the event loop.
 */
export function withPrecompiledRules<A extends Write, Chain extends { mutate(attributes: A): Promise<void> }>(
  turns: Turns,
  chain: Chain,
): Chain {
  return {
    ...chain,
    async mutate(attributes: A) {
      await chain.mutate(attributes);
      const { resource, subresource, object } = attributes;
      const isDefinition = resource.group === "apiextensions.k8s.io" && resource.resource === "customresourcedefinitions";
      if (isDefinition && subresource === "" && object !== undefined)
        await compileAhead(turns, object as CustomResourceDefinition); // cast: the resource of the write, and it was decoded as that kind
    },
  };
}

import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Quantities; default 0. */
export interface ContainerUsage {
  readonly cpu?: string;
  readonly memory?: string;
}

export interface UsageRequest {
  readonly pod: Pod;
  readonly container: string;
  /** Milliseconds since the epoch on the cluster's clock. */
  readonly now: number;
}

/** Usage of each container, or a function that is called for each read; undefined: no measurement. */
export type ContainerUsages = ContainerUsage | ((request: UsageRequest) => ContainerUsage | undefined);

/** @throws Error for an invalid quantity */
export function amountsOf({ cpu = "0", memory = "0" }: ContainerUsage): { cpuCores: number; memoryBytes: number } {
  return { cpuCores: amount("cpu", cpu, '"250m"').milliValue() / 1000, memoryBytes: amount("memory", memory, '"64Mi"').value() };
}

function amount(resource: string, text: string, example: string): Quantity {
  const refusal = `usage: ${JSON.stringify(text)} is no amount of ${resource}, such as ${example}`;
  let quantity: Quantity;
  try {
    quantity = Quantity.parse(text);
  } catch (err) {
    throw new Error(refusal, { cause: err });
  }
  if (quantity.sign < 0) throw new Error(refusal);
  return quantity;
}

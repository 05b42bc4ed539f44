import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { ReservedMemory } from "../../settings/structures.ts";

export const isMemoryResource = (name: string): boolean => name === "memory" || name.startsWith("hugepages-");

const expected = "expected numaNodeID:type=quantity[,type=quantity...]";

/**
 * `--reserved-memory`, or the configuration file's field when the flag is not set.
 * @param flag `0:memory=1Gi,hugepages-2Mi=2Gi;1:memory=1Gi`, split at commas; repeated flags are concatenated
 * @throws Error when the flag is malformed
 * Source: pkg/util/flag/flags.go ReservedMemoryVar
 */
export function parseReservedMemory(
  flag: readonly string[],
  field: readonly ReservedMemory[] | undefined,
): readonly ReservedMemory[] {
  if (flag.length === 0) return field ?? [];
  const found: { numaNode: number; limits: Record<string, string> }[] = [];
  for (const piece of flag.flatMap((text) => text.split(";"))) {
    const colon = piece.indexOf(":");
    if (colon >= 0) {
      const node = piece.slice(0, colon);
      if (!/^\d{1,9}$/.test(node)) throw new Error(`failed to convert the NUMA node ID, exptected integer, got ${node}`);
      found.push({ numaNode: Number(node), limits: {} });
    }
    const reservation = found.at(-1);
    if (reservation === undefined) throw new Error(`the reserved memory has incorrect format, ${expected}, got ${piece}`);
    const limit = piece.slice(colon + 1).split("=");
    const [type = "", amount = ""] = limit;
    if (limit.length !== 2) {
      throw new Error(`the reserved limit has incorrect value, expected type=quantatity, got ${piece.slice(colon + 1)}`);
    }
    if (!isMemoryResource(type)) throw new Error(`memory type conversion error, unknown type: ${JSON.stringify(type)}`);
    if (Quantity.tryParse(amount) === undefined)
      throw new Error(`failed to parse the quantatity, expected quantatity, got ${amount}`);
    reservation.limits[type] = amount;
  }
  return found;
}

/**
 * Pure: validation errors of `reservedMemory`.
 * Source: pkg/kubelet/apis/config/validation/validation_reserved_memory.go
 */
export function reservedMemoryProblems(reserved: readonly ReservedMemory[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const { numaNode, limits } of reserved) {
    for (const [type, amount] of Object.entries(limits ?? {})) {
      const of = `NUMA node ${numaNode} and resource ${JSON.stringify(type)}`;
      if (!isMemoryResource(type)) {
        problems.push(
          `the limit type ${JSON.stringify(type)} for NUMA node ${numaNode} is not allowed, only: "memory", "hugepages-"`,
        );
      }
      if (Quantity.tryParse(String(amount))?.isZero !== false) problems.push(`reserved memory may not be zero for ${of}`);
      if (seen.has(`${numaNode}/${type}`)) problems.push(`the reserved memory has a duplicate value for ${of}`);
      seen.add(`${numaNode}/${type}`);
    }
  }
  return problems.map((problem) => `invalid configuration: ${problem}`);
}

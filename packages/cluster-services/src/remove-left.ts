import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { ServicesFlags } from "./flags.ts";
import type { PartDefinition } from "./part.ts";

/**
 * Removes what parts that are off now have left on this machine when they ran before. A failure is logged, and keeps no other part's
 * rules and files from being removed.
 */
export async function removeLeft(
  flags: ServicesFlags,
  {
    all,
    chosen,
    log,
  }: { readonly all: readonly PartDefinition[]; readonly chosen: readonly PartDefinition[]; readonly log: Logger },
): Promise<void> {
  for (const part of all.filter(({ name }) => !chosen.some((one) => one.name === name))) {
    try {
      if (await part.removeLeft?.(flags)) log.info("removed rules and files of an earlier process", { part: part.name });
    } catch (err) {
      log.error("cannot remove rules and files of an earlier process", err, { part: part.name });
    }
  }
}

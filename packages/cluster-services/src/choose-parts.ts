import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { PartDefinition } from "./part.ts";

/**
 * Pure: the parts that the flags choose, in the order of the table.
 * @throws ConfigError for an unknown name and for one that is enabled and disabled
 */
export function chooseParts(
  parts: readonly PartDefinition[],
  { enable, disable }: { readonly enable: readonly string[]; readonly disable: readonly string[] },
): PartDefinition[] {
  const known = new Set(parts.map(({ name }) => name));
  for (const name of [...enable, ...disable.filter((one) => one !== "*")]) {
    if (!known.has(name))
      throw new ConfigError(`${JSON.stringify(name)} is not in the list of known parts: ${[...known].join(", ")}`);
    if (enable.includes(name) && disable.includes(name)) throw new ConfigError(`--enable and --disable both name ${name}`);
  }
  const isDisabled = (name: string): boolean => disable.includes(name) || disable.includes("*");
  return parts.filter(({ name, onByDefault }) => enable.includes(name) || (onByDefault && !isDisabled(name)));
}

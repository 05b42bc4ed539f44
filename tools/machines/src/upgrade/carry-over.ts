/** Units of the new archive with the flags that were changed for this machine. Pure. */
import { header, unitFlags, unitWithFlags } from "../host/units.ts";

/**
 * Applies this machine's changes of flags to the unit of another archive.
 * @param installed the unit on the machine
 * @param from the unit of the archive that `installed` was made from
 * @param to the unit of the other archive
 */
export function carriedOver(installed: string, from: string, to: string): string {
  if (installed === header + from) return header + to;
  const before = unitFlags(from);
  const own = Object.entries(unitFlags(installed)).filter(([name, value]) => before[name] !== value);
  return unitWithFlags(to, Object.fromEntries(own));
}

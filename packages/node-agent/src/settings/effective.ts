import { fieldsOf, type Settings, type Written } from "@coxswain/apimachinery/flags/settings";
import type { Flag } from "@coxswain/apimachinery/flags/types";
import type { ReservedMemory, Taint } from "./structures.ts";
import { type AgentSettings, agentSettings } from "./table.ts";

/** Settings that are parsed after flags and file are merged. */
const parsed: ReadonlySet<string> = new Set<keyof AgentSettings>(["taints", "manifestHeaders", "reservedNumaMemory"]);

/** The settings, what is parsed from them, and the file. */
interface EffectiveSettings extends AgentSettings {
  readonly registerWithTaints: readonly Taint[];
  readonly staticPodUrlHeader: Readonly<Record<string, readonly string[]>>;
  readonly reservedMemory: readonly ReservedMemory[];
  readonly written: Written;
}

/**
 * The configuration in effect, flags and defaults included, in the form of a KubeletConfiguration: `/configz`.
 * Zero values are left out where they are the default, as in the Go type.
 * Source: cmd/kubelet/app/server.go initConfigz
 */
export function effectiveConfiguration(config: EffectiveSettings): Record<string, unknown> {
  const values: Readonly<Record<string, unknown>> = { ...config };
  const rows = Object.entries<Flag<unknown>>(agentSettings as Settings); // cast: rows of several types, of which only defaults and names are read
  const shown: Settings = Object.fromEntries(rows.filter(([name, row]) => !parsed.has(name) && isShown(row, values[name])));
  const known = new Set(["apiVersion", "kind", ...rows.map(([, { field = "" }]) => field.split(".")[0])]);
  const others = Object.entries({
    ...Object.fromEntries(Object.entries(config.written).filter(([field]) => !known.has(field))),
    registerWithTaints: config.registerWithTaints,
    staticPodURLHeader: config.staticPodUrlHeader,
    reservedMemory: config.reservedMemory,
  }).filter(([, value]) => !isEmpty(value));
  return { ...fieldsOf(shown, values), ...Object.fromEntries(others) };
}

function isShown(row: Flag<unknown>, value: unknown): boolean {
  if (isEmpty(value)) return false;
  if (row.typeName === "duration" || (value !== 0 && value !== false)) return true;
  // A boolean that is true by flag and false in files, anonymous authentication, is a pointer; the port without a file is none.
  return value !== (value === false ? row.default : (row.fileDefault ?? row.default));
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);

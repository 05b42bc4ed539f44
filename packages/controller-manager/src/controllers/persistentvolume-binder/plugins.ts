import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { PersistentVolume, PersistentVolumeSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { provisionedBy } from "@coxswain/apimachinery/volumes/annotations";

/** What the control plane itself can do with a kind of volume; all others are the business of programs beside it. */
export interface Plugin {
  readonly name: string;
  /** Its field in a volume's spec. */
  readonly source: keyof PersistentVolumeSpec;
  readonly recycles?: boolean;
  readonly deletes?: boolean;
  readonly provisions?: boolean;
}

export const hostPathPlugin = "kubernetes.io/host-path";

const plugins: readonly Plugin[] = [
  { name: hostPathPlugin, source: "hostPath", recycles: true, deletes: true, provisions: true },
  { name: "kubernetes.io/nfs", source: "nfs", recycles: true },
  { name: "kubernetes.io/local-volume", source: "local" },
  { name: "kubernetes.io/csi", source: "csi" },
];

export function pluginOf(spec: PersistentVolumeSpec): Plugin | undefined {
  return plugins.find(({ source }) => spec[source] !== undefined);
}

/**
 * The plugin that a class names as its provisioner.
 * @returns undefined when it is a program beside the control plane
 * @throws Error with upstream's text for in-tree names that cannot provision here
 */
export function provisionerNamed(name: string): Plugin | undefined {
  return named(name, "provisions", "no provisionable volume plugin matched");
}

/**
 * The plugin that deletes a volume: the one that made it, else the one for its source.
 * @returns undefined when a program beside the control plane does
 * @throws Error with upstream's text when nobody does
 */
export function deleterOf(volume: PersistentVolume): Plugin | undefined {
  const none = "no deletable volume plugin matched";
  const maker = volume.metadata.annotations?.[provisionedBy];
  if (maker) return named(maker, "deletes", none);
  const plugin = pluginOf(volume.spec);
  if (plugin?.deletes === true) return plugin;
  const why = plugin === undefined ? "no volume plugin matched" : none;
  throw new Error(`error getting deleter volume plugin for volume ${goQuote(volume.metadata.name ?? "")}: ${why}`);
}

function named(name: string, ability: "provisions" | "deletes", otherwise: string): Plugin | undefined {
  const plugin = plugins.find((known) => known.name === name);
  if (plugin?.[ability] === true) return plugin;
  if (!name.startsWith("kubernetes.io/")) return undefined;
  throw new Error(plugin === undefined ? `no volume plugin matched name: ${name}` : otherwise);
}

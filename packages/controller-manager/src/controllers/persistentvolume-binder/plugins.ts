import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { PersistentVolume, PersistentVolumeSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { provisionedBy } from "@coxswain/apimachinery/volumes/annotations";

/** Capabilities of an in-tree volume plugin in this controller; everything else is left to external programs. */
export interface Plugin {
  readonly name: string;
  /** Field of the PersistentVolume spec. */
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

/** The plugin of the volume's source; undefined for other volume types. */
export function pluginOf(spec: PersistentVolumeSpec): Plugin | undefined {
  return plugins.find(({ source }) => spec[source] !== undefined);
}

/**
 * The in-tree plugin that a storage class names as its provisioner.
 * @returns undefined for an external provisioner
 * @throws Error with upstream's text for in-tree names that cannot provision here
 */
export function provisionerNamed(name: string): Plugin | undefined {
  return named(name, "provisions", "no provisionable volume plugin matched");
}

/**
 * The plugin that deletes a volume: the one that provisioned it, otherwise the one for its source.
 * @returns undefined when an external provisioner deletes it
 * @throws Error with upstream's text when no plugin can delete it
 */
export function deleterOf(volume: PersistentVolume): Plugin | undefined {
  const none = "no deletable volume plugin matched";
  const provisioner = volume.metadata.annotations?.[provisionedBy];
  if (provisioner) return named(provisioner, "deletes", none);
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

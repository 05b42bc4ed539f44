/** The links and units that a machine should have with another archive. */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { controlPlaneDaemons } from "../control-plane/flags.ts";
import { linkTarget, missingFiles, readIfThere, type WantedFile, writeFiles, writeLink } from "../host/files.ts";
import { reloadUnits, unitFolder } from "../host/systemd.ts";
import { timers } from "../host/timer.ts";
import { shipped } from "../machine.ts";
import { links } from "../node/steps.ts";
import { carriedOver } from "./carry-over.ts";

const unitPath = (name: string): string => join(unitFolder, name);

/** In restart order: the API server before its clients. */
const daemons = [...controlPlaneDaemons, "coxswain-services", "kubelet"] as const;

/** Daemons that have a unit on this machine. */
export const installedDaemons = (): string[] => daemons.filter((name) => existsSync(unitPath(`${name}.service`)));

interface MachineFiles {
  /** Target by path. */
  readonly links: Readonly<Record<string, string>>;
  readonly files: readonly WantedFile[];
}

/** The current links and units. */
export function presentFiles(): MachineFiles {
  const paths = [
    ...installedDaemons().map((name) => unitPath(`${name}.service`)),
    join(unitFolder, "kubelet.service.d", "10-kubeadm.conf"),
    ...Object.values(timers).map((name) => unitPath(`${name}.service`)),
  ];
  return {
    links: Object.fromEntries(links.map((path) => [path, linkTarget(path) ?? ""])),
    files: paths.flatMap((path) => {
      const content = readIfThere(path);
      return content === undefined ? [] : [{ path, content }];
    }),
  };
}

/** The links and units with the archive `to` instead of `from`. Changes made for this machine are kept. */
export function filesOf({ files }: MachineFiles, from: string, to: string): MachineFiles {
  const changed = files.map(({ path, content }) => {
    const name = basename(path);
    if (Object.values(timers).some((timer) => name === `${timer}.service`))
      return { path, content: content.replaceAll(`${from}/bin/`, `${to}/bin/`) };
    if (name === "10-kubeadm.conf") return { path, content: shipped(to, "systemd/kubelet.service.d/10-kubeadm.conf") };
    return { path, content: carriedOver(content, shipped(from, `systemd/${name}`), shipped(to, `systemd/${name}`)) };
  });
  return { links: Object.fromEntries(links.map((path) => [path, join(to, "bin", basename(path))])), files: changed };
}

/** The changes that `writeMachine` would make, one line each; empty for none. */
export const missingOf = ({ links: wanted, files }: MachineFiles): string[] => [
  ...Object.entries(wanted)
    .filter(([path, target]) => linkTarget(path) !== target)
    .map(([path, target]) => `link ${path} to ${target}`),
  ...missingFiles(files),
];

export async function writeMachine({ links: wanted, files }: MachineFiles): Promise<void> {
  for (const [path, target] of Object.entries(wanted)) if (target !== "" && linkTarget(path) !== target) writeLink(path, target);
  writeFiles(files);
  await reloadUnits();
}

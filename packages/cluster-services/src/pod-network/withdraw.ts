import type { RunProgram } from "../host/run-program.ts";
import { cleanUp } from "../services/iptables.ts";
import { rangesIn, removeConfig } from "./cni-config.ts";
import { commandsFor, readKernelState, runCommands } from "./kernel-state.ts";
import { chainMark } from "./names.ts";
import { contains, parseNetwork } from "./networks.ts";
import type { PodRoute } from "./plan.ts";
import type { PodNetworkSettings } from "./settings.ts";

/** Whether a marked route is this cluster's: several may share a machine. */
export function isOurRoute({ destination }: PodRoute, { clusterCidrs }: Pick<PodNetworkSettings, "clusterCidrs">): boolean {
  const network = parseNetwork(destination);
  const outer = clusterCidrs.flatMap((cidr) => parseNetwork(cidr) ?? []);
  return outer.length === 0 || network === undefined || outer.some((one) => contains(one, network));
}

/** Removes the CNI configuration, routes, the VXLAN interface, rules, and the bridge when no pod is on it. */
export async function withdraw(settings: PodNetworkSettings, run: RunProgram): Promise<void> {
  await removeConfig(settings.configPath);
  const state = await readKernelState(run, settings.bridge);
  const nothing = { own: [], routes: [], vxlan: undefined, mtu: 0 };
  await runCommands(
    run,
    commandsFor(nothing, state, settings, (route) => isOurRoute(route, settings)),
  );
  await cleanUp(`${settings.chainPrefix}${chainMark}`, run);
  if (!state.links.some(({ name, kind }) => name === settings.bridge && kind === "bridge")) return;
  const ports = (await run("ip", ["-j", "link", "show", "master", settings.bridge])).trim();
  if (ports === "" || ports === "[]") await run("ip", ["link", "delete", "dev", settings.bridge]);
}

/** For a process without this part: removes what an earlier one with it has left. */
export async function withdrawLeftOver(settings: PodNetworkSettings, run: RunProgram): Promise<boolean> {
  if (rangesIn(settings.configPath) === undefined) return false;
  await withdraw(settings, run);
  return true;
}

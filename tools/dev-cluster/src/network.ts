import { writeFileSync } from "node:fs";
import { exec, need, tryExec } from "./commands.ts";
import { Failure } from "./failure.ts";
import type { Settings } from "./settings.ts";

/** Forwarding for the pod range, and the bridge with its address, so that the node has one before the first pod. */
export async function setUpNetwork(settings: Settings): Promise<void> {
  try {
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
  } catch (err) {
    throw new Failure(`cannot turn on IPv4 forwarding: ${(err as Error).message}`);
  }
  const ip = need("ip", "iproute2");
  if ((await tryExec(ip, ["link", "show", settings.bridge])) === undefined) {
    await exec(ip, ["link", "add", settings.bridge, "type", "bridge"]);
  }
  const addresses = await exec(ip, ["-4", "address", "show", "dev", settings.bridge]);
  if (!addresses.includes(`${settings.podGateway}/`)) {
    await exec(ip, ["address", "add", `${settings.podGateway}/${settings.podCidr.split("/")[1]}`, "dev", settings.bridge]);
  }
  await exec(ip, ["link", "set", settings.bridge, "up"]);
  for (const rule of forwardRules(settings)) {
    // Another program (docker) may have set the policy of FORWARD to DROP.
    if ((await tryExec("iptables", ["-w", "-C", "FORWARD", ...rule])) === undefined)
      await exec("iptables", ["-w", "-I", "FORWARD", ...rule]);
  }
}

export async function tearDownNetwork(settings: Settings): Promise<void> {
  for (const rule of forwardRules(settings)) await tryExec("iptables", ["-w", "-D", "FORWARD", ...rule]);
  await removeMasqueradeChains(settings);
  await tryExec("ip", ["link", "delete", settings.bridge]);
}

const forwardRules = (settings: Settings): string[][] =>
  ["-s", "-d"].map((side) => [side, settings.podCidr, "-m", "comment", "--comment", `cox-${settings.id}`, "-j", "ACCEPT"]);

/** The bridge plugin names its masquerade chains after a hash and leaves them when a pod was not taken down through it. */
async function removeMasqueradeChains(settings: Settings): Promise<void> {
  const rules = (await tryExec("iptables", ["-w", "-t", "nat", "-S"])) ?? "";
  const chains = new Set<string>();
  for (const line of rules.split("\n")) {
    const chain = /-A POSTROUTING .*-j (CNI-[0-9a-f]+)$/.exec(line)?.[1];
    if (chain === undefined || !line.includes(`name: \\"cox-${settings.id}\\"`)) continue;
    const source = /-s (\S+)/.exec(line)?.[1];
    const comment = /--comment "((?:[^"\\]|\\.)*)"/.exec(line)?.[1]?.replaceAll('\\"', '"');
    if (source !== undefined && comment !== undefined) {
      await tryExec("iptables", [
        "-w",
        "-t",
        "nat",
        "-D",
        "POSTROUTING",
        "-s",
        source,
        "-m",
        "comment",
        "--comment",
        comment,
        "-j",
        chain,
      ]);
    }
    chains.add(chain);
  }
  for (const chain of chains) {
    await tryExec("iptables", ["-w", "-t", "nat", "-F", chain]);
    await tryExec("iptables", ["-w", "-t", "nat", "-X", chain]);
  }
}

import { writeFileSync } from "node:fs";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { exec, need, tryExec } from "./commands.ts";
import { Failure } from "./failure.ts";
import type { Settings } from "./settings.ts";

/** Enables forwarding for the pod range and creates the bridge, whose address is the node's address before any pod starts. */
export async function setUpNetwork(settings: Settings): Promise<void> {
  try {
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
  } catch (err) {
    throw new Failure(`cannot turn on IPv4 forwarding: ${messageOf(err)}`);
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
    // Other programs, such as docker, may set the policy of FORWARD to DROP.
    if ((await tryExec("iptables", ["-w", "-C", "FORWARD", ...rule])) === undefined)
      await exec("iptables", ["-w", "-I", "FORWARD", ...rule]);
  }
}

const forwardRules = (settings: Settings): string[][] =>
  ["-s", "-d"].map((side) => [side, settings.podCidr, "-m", "comment", "--comment", `cox-${settings.id}`, "-j", "ACCEPT"]);

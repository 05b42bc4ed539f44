import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunProgram, runProgram } from "../host/run-program.ts";
import { hasIpv6 } from "../services/kernel-settings.ts";
import type { IpFamily } from "./networks.ts";

/** The machine whose network is set up. Tests give a network namespace. */
export interface PodNetworkHost {
  readonly run: RunProgram;
  hasIpv6(): Promise<boolean>;
  /** Lets the kernel forward packets. @throws Error when it refuses */
  forward(family: IpFamily): void | Promise<void>;
}

/** @param root folder of the kernel's files; tests give another */
export const hostAt = (root: string, run: RunProgram): PodNetworkHost => {
  const conf6 = join(root, "proc/sys/net/ipv6/conf");
  const forwarding6 = join(conf6, "all/forwarding");
  return {
    run,
    hasIpv6: () => hasIpv6(run, root),
    forward(family) {
      if (family === 4) return set(join(root, "proc/sys/net/ipv4/ip_forward"), "1");
      if (readFileSync(forwarding6, "utf8").trim() === "1") return;
      // A machine that forwards takes no routes of router advertisements unless this says 2: it would lose its default route.
      for (const name of readdirSync(conf6)) {
        const file = join(conf6, name, "accept_ra");
        if (readFileSync(file, "utf8").trim() === "1") set(file, "2");
      }
      set(forwarding6, "1");
    },
  };
};

export const thisHost = hostAt("/", runProgram);

function set(file: string, value: string): void {
  if (readFileSync(file, "utf8").trim() !== value) writeFileSync(file, value);
}

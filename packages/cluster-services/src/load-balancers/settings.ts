import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { ServicesFlags } from "../flags.ts";
import { Pool } from "./pool.ts";

export const poolOf = (flags: ServicesFlags): Pool => new Pool(flags["load-balancer-pool"]);

const mostPorts = 65_536;

/** Ports of the nodes' addresses that no Service may take. @throws ConfigError for what is no port or range of ports */
export function reservedPorts(flags: ServicesFlags): ReadonlySet<number> {
  const ports = new Set<number>();
  for (const entry of flags["load-balancer-reserved-ports"]) {
    const [, from, to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(entry) ?? [];
    if (from === undefined || Number(to) >= mostPorts || Number(from) > Number(to))
      throw new ConfigError(
        `--load-balancer-reserved-ports must contain ports and ranges of ports (10250-10260), not ${JSON.stringify(entry)}`,
      );
    for (let port = Number(from); port <= Number(to); port++) ports.add(port);
  }
  return ports;
}

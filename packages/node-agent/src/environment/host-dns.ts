import { readFile } from "node:fs/promises";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type DnsConfig, parseResolvConf } from "./dns.ts";

/** The node's resolver configuration (`--resolv-conf`); empty when no file is configured or it cannot be read. */
export async function readHostDns(path: string, log: Logger): Promise<DnsConfig> {
  const none: DnsConfig = { servers: [], searches: [], options: [] };
  if (path === "") return none;
  try {
    return parseResolvConf(await readFile(path, "utf8"));
  } catch (err) {
    log.error("Could not open resolv conf file", err, { path });
    return none;
  }
}

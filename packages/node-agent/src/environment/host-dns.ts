import { readFile } from "node:fs/promises";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { type DnsConfig, parseResolvConf } from "./dns.ts";

/** The node's own resolver (`--resolv-conf`); nothing where the file is not named or cannot be read. */
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

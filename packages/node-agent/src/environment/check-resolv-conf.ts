import { readFile } from "node:fs/promises";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import type { AgentConfig } from "../agent-config.ts";
import { maxSearches, maxSearchLength, parseResolvConf } from "./dns.ts";

const maxDomainLength = 253;
/** Search domains that are put before the node's: `<namespace>.svc.<domain>`, `svc.<domain>` and `<domain>`. */
const clusterSearches = 3;

/**
 * Checks that the node's resolver configuration has few enough search domains and characters for those of the cluster to be added.
 * @returns the problem, for an event on the node; undefined when there is none
 * Source: pkg/kubelet/network/dns/dns.go CheckLimitsForResolvConf
 */
export async function checkResolvConf(path: string, clusterDomain: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (err) {
    return errorCode(err) === "ENOENT" ? `open ${path}: no such file or directory` : messageOf(err);
  }
  const { searches } = parseResolvConf(text);
  const room = maxSearches - (clusterDomain === "" ? 0 : clusterSearches);
  if (searches.length > room) return `Resolv.conf file '${path}' contains search line consisting of more than ${room} domains!`;
  if (searches.some((search) => search.length > maxDomainLength))
    return `Resolv.conf file "${path}" contains a search path which length is more than allowed ${maxDomainLength}!`;
  if (searches.join(" ").length > maxSearchLength)
    return `Resolv.conf file '${path}' contains search line which length is more than allowed ${maxSearchLength} chars!`;
  return undefined;
}

/** Reports the problem of the resolver configuration, if there is one, as an event of the node. */
export async function reportResolvConf(
  { resolvConf, clusterDomain }: Pick<AgentConfig, "resolvConf" | "clusterDomain">,
  notify: { node: (type: "Warning", reason: string, message: string) => void },
): Promise<void> {
  const problem = resolvConf === "" ? undefined : await checkResolvConf(resolvConf, clusterDomain);
  if (problem !== undefined) notify.node("Warning", "CheckLimitsForResolvConf", problem);
}

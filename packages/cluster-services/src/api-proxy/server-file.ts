/** The list of API servers on disk: one address per line, read at the start of the node. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { dirname } from "node:path";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";

const isAddress = (text: string): boolean => {
  const [, host = "", port] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  return isIP(host) !== 0 && Number(port) > 0 && Number(port) < 65536;
};

/** @throws Error when the file cannot be read or has no address */
export function readServers(file: string): string[] {
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.trim());
  const servers = lines.filter(isAddress);
  if (servers.length === 0)
    throw new Error(`${file} must contain one address of an API server per line, such as 192.0.2.11:6443`);
  return servers;
}

/** Replaces the file as a whole. */
export function writeServers(file: string, servers: readonly string[]): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, `${servers.join("\n")}\n`);
  renameSync(`${file}.new`, file);
}

/** The API servers that the slices of the Service `default/kubernetes` name, sorted. */
export function serversOf(slices: readonly EndpointSlice[]): string[] {
  const servers = slices.flatMap(({ endpoints = [], ports, addressType }) => {
    const port = ports?.find(({ name }) => name === "https")?.port;
    if (port === undefined || addressType === "FQDN") return [];
    return endpoints.flatMap(({ addresses }) => addresses.map((ip) => (ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`)));
  });
  return [...new Set(servers)].sort();
}

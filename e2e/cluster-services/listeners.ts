import { isIPv4 } from "node:net";

export type Protocol = "tcp" | "tcp6" | "udp" | "udp6";

const states = { tcp: "0A", tcp6: "0A", udp: "07", udp6: "07" }; // TCP_LISTEN; TCP_CLOSE of a socket without a peer

/** As in /proc/net: 32-bit words in the machine's byte order, which is little-endian. */
export function endpointOf(ip: string, port: number): string {
  if (!isIPv4(ip)) throw new Error(`${ip} is no IPv4 address`);
  const bytes = ip.split(".").map((part) => Number(part).toString(16).padStart(2, "0"));
  return `${bytes.toReversed().join("").toUpperCase()}:${port.toString(16).padStart(4, "0").toUpperCase()}`;
}

/**
 * The sockets that take in what others send. UDP sockets with a port that the kernel chose are those of questions under way: they are left out.
 * @param text of `/proc/<pid>/net/<protocol>` @param inodes the process's sockets
 */
export function listeningOn(protocol: Protocol, text: string, inodes: ReadonlySet<string>): string[] {
  return text
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === states[protocol] && inodes.has(fields[9] ?? ""))
    .map(([, local = ""]) => `${protocol} ${local}`)
    .filter((line) => !protocol.startsWith("udp") || Number.parseInt(line.split(":")[1] ?? "", 16) < 32_768);
}
